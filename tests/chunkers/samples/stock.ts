import { Injectable } from './framework';
import type { Clock } from './clock';

export type Article = string & { readonly brand: unique symbol };

/** What happened to a shelf. */
export interface Movement {
  readonly article: Article;
  /** Negative when pieces were taken. */
  readonly pieces: number;
  readonly at: Date;
}

export enum Unit {
  Piece = 'piece',
  Box = 'box',
}

export abstract class Store<T extends Movement> {
  protected abstract append(movement: T): Promise<void>;
  abstract all(): AsyncIterable<T>;
}

@Injectable({ scope: 'singleton' })
export class Ledger extends Store<Movement> {
  private readonly movements: Movement[] = [];

  constructor(private readonly clock: Clock, readonly unit: Unit = Unit.Piece) {
    super();
  }

  count(article: Article): number;
  count(article: Article, until: Date): number;
  count(article: Article, until?: Date): number {
    let sum = 0;
    for (const movement of this.movements) {
      if (movement.article !== article) continue;
      if (until && movement.at > until) continue;
      sum += movement.pieces;
    }
    return sum;
  }

  protected async append(movement: Movement): Promise<void> {
    this.movements.push(movement);
  }

  async *all(): AsyncIterable<Movement> {
    yield* this.movements;
  }

  take = async (article: Article, pieces: number): Promise<number> => {
    const left = this.count(article) - pieces;
    if (left < 0) {
      throw new Error(`only ${left + pieces} of ${article} are left`);
    }
    await this.append({ article, pieces: -pieces, at: this.clock.now() });
    return left;
  };
}

export namespace Report {
  export function lines(ledger: Ledger, articles: Article[]): string[] {
    return articles.map((article) => `${article}: ${ledger.count(article)} ${ledger.unit}`);
  }

  export function low(ledger: Ledger, articles: Article[], least = 5): Article[] {
    return articles.filter((article) => ledger.count(article) < least);
  }
}

declare global {
  interface Window {
    ledger: Ledger;
  }
}

export const isArticle = (value: unknown): value is Article =>
  typeof value === 'string' && /^[A-Z]{2}-\d+$/.test(value);

export default Ledger;
