import * as React from 'react';
import { Ledger, Article } from './stock';

type Props = {
  ledger: Ledger;
  articles: Article[];
  onOrder?: (article: Article) => void;
};

/** One line of the table. */
function Row({ ledger, article, onOrder }: { ledger: Ledger; article: Article; onOrder?: Props['onOrder'] }) {
  const count = ledger.count(article);
  return (
    <tr className={count < 5 ? 'low' : undefined}>
      <td>{article}</td>
      <td>{count}</td>
      <td>
        {count < 5 && (
          <button type="button" onClick={() => onOrder?.(article)}>
            Order
          </button>
        )}
      </td>
    </tr>
  );
}

export const StockTable: React.FC<Props> = ({ ledger, articles, onOrder }) => {
  const [filter, setFilter] = React.useState('');
  const shown = React.useMemo(
    () => articles.filter((article) => article.includes(filter)),
    [articles, filter],
  );
  React.useEffect(() => {
    document.title = `${shown.length} articles`;
  }, [shown.length]);

  return (
    <section>
      <label>
        Filter
        <input value={filter} onChange={(event) => setFilter(event.target.value)} />
      </label>
      <table>
        <tbody>
          {shown.map((article) => (
            <Row key={article} ledger={ledger} article={article} onOrder={onOrder} />
          ))}
        </tbody>
      </table>
    </section>
  );
};
