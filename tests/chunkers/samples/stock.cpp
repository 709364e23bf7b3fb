// Example code for tests.
#include "stock.hpp"

#include <algorithm>
#include <stdexcept>

#define STOCK_LOW 5
#define STOCK_CHECK(condition, text) \
  do {                               \
    if (!(condition))                \
      throw std::logic_error(text);  \
  } while (false)

namespace example {
namespace stock {

namespace {

/// Compares two shelves by article.
bool before(const Shelf &one, const Shelf &other) { return one.article < other.article; }

} // namespace

template <typename Key>
class Index {
public:
  explicit Index(std::vector<Key> keys) : keys_(std::move(keys)) {
    std::sort(keys_.begin(), keys_.end());
  }

  // Binary search; -1 if there is none.
  int find(const Key &key) const {
    auto found = std::lower_bound(keys_.begin(), keys_.end(), key);
    if (found == keys_.end() || *found != key) {
      return -1;
    }
    return static_cast<int>(found - keys_.begin());
  }

private:
  std::vector<Key> keys_;
};

Stock::Stock() = default;

Stock::~Stock() {
  shelves_.clear();
}

/**
 * Take pieces from a shelf.
 */
int Stock::take(const std::string &article, int pieces) {
  for (auto &shelf : shelves_) {
    if (shelf.article == article) {
      STOCK_CHECK(shelf.count >= pieces, "too few are left");
      shelf.count -= pieces;
      return shelf.count;
    }
  }
  throw std::out_of_range(article);
}

std::ostream &operator<<(std::ostream &out, const Stock &stock) {
  for (const auto &shelf : stock.shelves_) {
    out << shelf.article << ": " << shelf.count;
    if (shelf.count < STOCK_LOW) {
      out << " (order more)";
    }
    out << '\n';
  }
  return out;
}

enum class Unit { piece, box };

} // namespace stock
} // namespace example

#ifdef STOCK_C_API
extern "C" {
int stock_take(example::stock::Stock *stock, const char *article, int pieces) {
  return stock->take(article, pieces);
}
}
#endif
