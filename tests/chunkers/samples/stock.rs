//! Counts what lies on shelves.
#![warn(missing_docs)]

use std::collections::BTreeMap;
use std::fmt;

mod orders;

/// Below this count more is ordered.
pub const LOW: u32 = 5;

/// What can go wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum StockError {
    /// Fewer pieces lie there than were asked for.
    TooFew { article: String, left: u32 },
    /// No such shelf.
    Unknown(String),
}

impl fmt::Display for StockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StockError::TooFew { article, left } => write!(f, "only {left} of {article} are left"),
            StockError::Unknown(article) => write!(f, "there is no shelf for {article}"),
        }
    }
}

/// All shelves, by article.
#[derive(Default)]
pub struct Stock {
    shelves: BTreeMap<String, u32>,
}

impl Stock {
    /// An empty stock.
    pub fn new() -> Self {
        Self::default()
    }

    /// Put pieces on a shelf.
    pub fn put(&mut self, article: &str, pieces: u32) {
        *self.shelves.entry(article.to_owned()).or_insert(0) += pieces;
    }

    /// Take pieces from a shelf.
    ///
    /// # Errors
    /// When the shelf does not exist or holds fewer pieces.
    pub fn take(&mut self, article: &str, pieces: u32) -> Result<u32, StockError> {
        let left = self
            .shelves
            .get_mut(article)
            .ok_or_else(|| StockError::Unknown(article.to_owned()))?;
        if *left < pieces {
            return Err(StockError::TooFew {
                article: article.to_owned(),
                left: *left,
            });
        }
        *left -= pieces;
        Ok(*left)
    }

    fn low(&self) -> impl Iterator<Item = &str> + '_ {
        self.shelves
            .iter()
            .filter(|(_, count)| **count < LOW)
            .map(|(article, _)| article.as_str())
    }
}

macro_rules! stock {
    ($($article:literal => $count:expr),* $(,)?) => {{
        let mut stock = Stock::new();
        $(stock.put($article, $count);)*
        stock
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_is_there() {
        let mut stock = stock! { "nails" => 10, "screws" => 3 };
        assert_eq!(stock.take("nails", 4), Ok(6));
        assert_eq!(stock.low().collect::<Vec<_>>(), ["screws"]);
    }

    #[test]
    fn refuses_what_is_not() {
        let mut stock = Stock::new();
        assert_eq!(stock.take("glue", 1), Err(StockError::Unknown("glue".into())));
    }
}
