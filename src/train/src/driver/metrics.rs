//! Metrics that are computed for the same rows in every round.

use super::scores::Scores;
use crate::config::Parameters;
use planetree_base::error::Result;
use planetree_data::source::LabelledRows;
use planetree_metric::{Mean, Metric, Prepared, evaluate};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Metrics that are computed for the same rows in every round. Means are exact sums, so neither partitions nor chunks
/// change a bit.
pub struct Metrics {
    chunks: Vec<Chunk>,
}

/// Consecutive queries of a partition, which one thread evaluates.
struct Chunk {
    partition: usize,
    rows: Range<usize>,
    /// Bounds of the queries, relative to the first row of the chunk.
    query_bounds: Vec<u32>,
    /// What does not change between rounds, by metric.
    prepared: Vec<Prepared>,
}

/// About how many rows a chunk has. It consists of whole queries.
const CHUNK_ROWS: u32 = 8192;

impl Metrics {
    /// Precomputes the parts of the metrics that do not change between rounds.
    pub fn new<L: Sync>(parameters: &Parameters<L>, rows: &[LabelledRows]) -> Result<Self> {
        let convention = Arc::new(parameters.convention.clone());
        let cut = |(partition, rows): (usize, &LabelledRows)| -> Vec<(usize, Range<usize>, Vec<u32>)> {
            chunks(&rows.query_bounds).map(|(range, bounds)| (partition, range, bounds)).collect()
        };
        let all: Vec<_> = rows.iter().enumerate().flat_map(cut).collect();
        let prepare = |(partition, range, query_bounds): (usize, Range<usize>, Vec<u32>)| {
            let labels = &rows[partition].labels[range.clone()];
            let of = |metric: &Metric| metric.prepare_under(&convention, labels, &query_bounds);
            let prepared = parameters.metrics.iter().map(of).collect::<Result<_>>()?;
            Ok(Chunk { partition, rows: range, query_bounds, prepared })
        };
        Ok(Metrics { chunks: all.into_par_iter().map(prepare).collect::<Result<_>>()? })
    }

    /// Computes the metrics of the given scores. `rows` may be the first partitions only.
    pub fn evaluate(&self, rows: &[LabelledRows], scores: &Scores) -> Vec<Mean> {
        let count = self.chunks.partition_point(|chunk| chunk.partition < rows.len());
        let of_chunk = |chunk: &Chunk| {
            let labels = &rows[chunk.partition].labels[chunk.rows.clone()];
            let scores = &scores.partition(chunk.partition)[chunk.rows.clone()];
            evaluate(&chunk.prepared, labels, scores, &chunk.query_bounds)
        };
        let means: Vec<Vec<Mean>> = self.chunks[..count].par_iter().map(of_chunk).collect();
        let merge = |mut sum: Vec<Mean>, means: Vec<Mean>| {
            sum.iter_mut().zip(&means).for_each(|(sum, mean)| sum.merge(mean));
            sum
        };
        means.into_iter().reduce(merge).unwrap_or_default()
    }
}

/// Divides a partition into chunks of whole queries: their rows, and the bounds of their queries.
fn chunks(query_bounds: &[u32]) -> impl Iterator<Item = (Range<usize>, Vec<u32>)> {
    let queries = query_bounds.len().saturating_sub(1);
    let mut first = 0;
    std::iter::from_fn(move || {
        if first >= queries {
            return None;
        }
        let start = query_bounds[first];
        let end = query_bounds.partition_point(|bound| *bound < start + CHUNK_ROWS);
        let end = end.clamp(first + 1, queries);
        let bounds = query_bounds[first..=end].iter().map(|bound| bound - start).collect();
        let rows = start as usize..query_bounds[end] as usize;
        first = end;
        Some((rows, bounds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_whole_queries_and_all_rows() {
        let sizes = [3u32, 8000, 500, 20_000, 1, 1, 8190, 2, 7];
        let mut bounds = vec![0];
        for size in sizes {
            bounds.push(bounds[bounds.len() - 1] + size);
        }
        let (mut next, mut found) = (0, Vec::new());
        for (rows, relative) in chunks(&bounds) {
            assert_eq!(rows.start, next);
            assert_eq!(relative.last().map(|bound| *bound as usize), Some(rows.len()));
            found.extend(relative.windows(2).map(|pair| pair[1] - pair[0]));
            next = rows.end;
        }
        assert_eq!((next, found), (bounds[sizes.len()] as usize, sizes.to_vec()));
        assert!(chunks(&bounds).count() > 2);
        assert_eq!(chunks(&[0]).count(), 0);
    }
}
