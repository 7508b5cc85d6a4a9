//! Computes the ranks of documents within their queries.

use arrow::array::{Array, StringArray};

/// Ranks the rows of each query by descending score, from 1. Equal scores are ranked in row order. The rows of a query
/// must be contiguous.
pub fn ranks(query_ids: &StringArray, scores: &[f64]) -> Vec<u32> {
    let mut ranks = vec![0; scores.len()];
    let mut order: Vec<u32> = Vec::new();
    let rows = scores.len().min(query_ids.len());
    let mut start = 0;
    while start < rows {
        let query = query_ids.value(start);
        let end = (start + 1..rows).find(|row| query_ids.value(*row) != query).unwrap_or(rows);
        order.clear();
        order.extend(start as u32..end as u32);
        // Adding 0.0 turns -0.0 into 0.0, so that the two compare equal.
        let key = |row: &u32| scores[*row as usize] + 0.0;
        order.sort_by(|one, other| key(other).total_cmp(&key(one)));
        for (rank, row) in (1..).zip(&order) {
            ranks[*row as usize] = rank;
        }
        start = end;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_restart_with_every_query_and_ties_keep_row_order() {
        let queries = StringArray::from(vec!["a", "a", "a", "a", "b", "c", "c"]);
        let scores = [0.5, 2.0, 0.5, f64::INFINITY, -1.0, -0.0, 0.0];
        assert_eq!(ranks(&queries, &scores), [3, 2, 4, 1, 1, 1, 2]);
        assert_eq!(ranks(&StringArray::from(Vec::<&str>::new()), &[]), [0u32; 0]);
    }
}
