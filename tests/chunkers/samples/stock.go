// Package stock counts what lies on shelves.
package stock

import (
	"errors"
	"fmt"
	"sort"
	"sync"
)

// ErrEmpty says that nothing is left.
var ErrEmpty = errors.New("stock: shelf is empty")

const (
	// Low is the count below which more is ordered.
	Low  = 5
	High = 500
)

// Shelf holds one article.
type Shelf struct {
	Article string
	count   int
	mu      sync.Mutex
}

// Counter is anything that can be counted.
type Counter interface {
	Count() int
	Take(pieces int) error
}

// NewShelf makes a shelf.
func NewShelf(article string, count int) *Shelf {
	return &Shelf{Article: article, count: count}
}

// Count returns how many pieces lie on the shelf.
func (s *Shelf) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Take removes pieces from the shelf.
func (s *Shelf) Take(pieces int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pieces > s.count {
		return fmt.Errorf("take %d of %s: %w", pieces, s.Article, ErrEmpty)
	}
	s.count -= pieces
	return nil
}

// Report writes a line for each shelf, sorted by article, with a note where more has to be ordered.
func Report(shelves []*Shelf, write func(string)) (low int) {
	sorted := append([]*Shelf(nil), shelves...)
	sort.Slice(sorted, func(i, j int) bool {
		return sorted[i].Article < sorted[j].Article
	})
	width := 0
	for _, shelf := range sorted {
		if len(shelf.Article) > width {
			width = len(shelf.Article)
		}
	}
	for _, shelf := range sorted {
		count := shelf.Count()
		switch {
		case count == 0:
			write(fmt.Sprintf("%-*s empty", width, shelf.Article))
			low++
		case count < Low:
			write(fmt.Sprintf("%-*s %d (order more)", width, shelf.Article, count))
			low++
		default:
			write(fmt.Sprintf("%-*s %d", width, shelf.Article, count))
		}
	}
	return low
}

// Sum adds the counts of anything that can be counted.
func Sum[C Counter](counters []C) int {
	total := 0
	for _, counter := range counters {
		total += counter.Count()
	}
	return total
}
