/*
 * Example code for tests, free to use.
 */
package example.stock;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Counts what lies on shelves.
 *
 * @param <A> how articles are named
 */
@SuppressWarnings("unchecked")
public class Stock<A extends Comparable<A>> implements Iterable<Stock.Shelf<A>> {

    /** Below this count more is ordered. */
    public static final int LOW = 5;

    private final List<Shelf<A>> shelves = new ArrayList<>();

    static {
        System.setProperty("stock.loaded", "true");
    }

    public Stock() {
    }

    public Stock(List<Shelf<A>> shelves) {
        this.shelves.addAll(Objects.requireNonNull(shelves));
    }

    /**
     * Take pieces from a shelf.
     *
     * @throws IllegalStateException when fewer pieces lie there
     */
    public int take(A article, int pieces) {
        for (Shelf<A> shelf : shelves) {
            if (shelf.article().equals(article)) {
                int left = shelf.count() - pieces;
                if (left < 0) {
                    throw new IllegalStateException("only " + shelf.count() + " of " + article + " are left");
                }
                shelves.set(shelves.indexOf(shelf), new Shelf<>(article, left));
                return left;
            }
        }
        throw new IllegalStateException("there is no shelf for " + article);
    }

    @Override
    public java.util.Iterator<Shelf<A>> iterator() {
        return shelves.iterator();
    }

    public enum Unit {
        PIECE("piece"),
        BOX("box") {
            @Override
            String plural() {
                return "boxes";
            }
        };

        private final String name;

        Unit(String name) {
            this.name = name;
        }

        String plural() {
            return name + "s";
        }
    }

    public record Shelf<A>(A article, int count) {
        public Shelf {
            if (count < 0) {
                throw new IllegalArgumentException("a count is never negative");
            }
        }
    }

    interface Listener<A> {
        void low(A article);

        default void empty(A article) {
            low(article);
        }
    }
}
