//! Draws a share of the documents of a query.

use planetree_base::error::{Error, Result};
use planetree_base::random::Stream;
use xxhash_rust::xxh3::xxh3_64;

/// The end of the id of a query that is a sample of another one.
pub(crate) const SAMPLE_SUFFIX: &str = ":sample";

const KEY: u64 = 0x656c_706d_6173;

/// A sample of the documents of every query, without replacement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentSample {
    /// The share of documents, above 0 and at most 1.
    pub share: f64,
    /// Random seed.
    pub seed: u64,
}

impl DocumentSample {
    /// Checks the share.
    pub fn new(share: f64, seed: u64) -> Result<Self> {
        if share > 0.0 && share <= 1.0 {
            return Ok(DocumentSample { share, seed });
        }
        Err(Error::usage(
            format_args!("--documents {share}: expected a share above 0 and at most 1"),
            "pass a share such as 0.5",
        ))
    }

    /// Returns the drawn documents of a query with this id and number of documents, in order. The draw depends on the
    /// seed, the id and the number only. At least one document is drawn.
    pub fn rows(&self, query: &str, documents: usize) -> Vec<usize> {
        let count = ((self.share * documents as f64).round() as usize).clamp(1, documents.max(1));
        let name = xxh3_64(query.as_bytes());
        let key = |document: usize| Stream::new(&[self.seed, KEY, name, document as u64]).bits();
        let mut drawn: Vec<(u64, usize)> = (0..documents).map(|document| (key(document), document)).collect();
        drawn.sort_unstable();
        let mut rows: Vec<usize> = drawn.into_iter().take(count).map(|(_, document)| document).collect();
        rows.sort_unstable();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_drawn_without_replacement_and_by_key() {
        let sample = DocumentSample::new(0.5, 7).unwrap();
        for documents in [1, 2, 3, 10, 101] {
            let rows = sample.rows("q", documents);
            let expected = ((documents as f64 / 2.0).round() as usize).max(1);
            assert_eq!(rows.len(), expected, "{documents}");
            assert!(rows.windows(2).all(|pair| pair[0] < pair[1]) && rows.iter().all(|row| *row < documents));
        }
        assert_eq!(sample.rows("q", 100), sample.rows("q", 100));
        assert_ne!(sample.rows("q", 100), sample.rows("r", 100));
        assert_ne!(sample.rows("q", 100), DocumentSample::new(0.5, 8).unwrap().rows("q", 100));
        assert_eq!(DocumentSample::new(1.0, 0).unwrap().rows("q", 5), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn every_document_is_equally_likely() {
        let sample = DocumentSample::new(0.3, 1).unwrap();
        let mut counts = [0; 10];
        for query in 0..4000 {
            sample.rows(&query.to_string(), 10).into_iter().for_each(|row| counts[row] += 1);
        }
        assert!(counts.iter().all(|count| (1100..1300).contains(count)), "{counts:?}");
    }

    #[test]
    fn shares_outside_0_to_1_are_refused() {
        for share in [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(DocumentSample::new(share, 0).unwrap_err().exit_code(), 2, "{share}");
        }
    }
}
