//! Naive metrics, to compare with those of the program.

use super::tables::ScoredRow;

/// Root mean squared error of the scores.
pub fn rmse(rows: &[ScoredRow]) -> f64 {
    let squares: f64 = rows.iter().map(|row| (f64::from(row.label) - row.score).powi(2)).sum();
    (squares / rows.len() as f64).sqrt()
}

/// NDCG@10 as the program prints it: gain 2^label - 1, discount log2(rank + 1), 0 for a query without gain, equal scores
/// in row order.
pub fn ndcg(rows: &[ScoredRow]) -> f64 {
    let dcg = |labels: &[f32]| -> f64 {
        let ranked = labels.iter().zip(1..).take(10);
        ranked.map(|(label, rank)| (f64::from(*label).exp2() - 1.0) / f64::from(rank + 1).log2()).sum()
    };
    let mut values = Vec::new();
    for query in rows.chunk_by(|one, other| one.query == other.query) {
        let mut ranked = query.to_vec();
        ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
        let found: Vec<f32> = ranked.iter().map(|row| row.label).collect();
        let mut best = found.clone();
        best.sort_by(|one, other| other.total_cmp(one));
        let ideal = dcg(&best);
        values.push(if ideal > 0.0 { dcg(&found) / ideal } else { 0.0 });
    }
    values.iter().sum::<f64>() / values.len() as f64
}

/// Asserts that two numbers agree within a relative tolerance.
pub fn assert_close(found: f64, expected: f64, relative: f64, context: &str) {
    let tolerance = relative * expected.abs().max(1e-12);
    assert!((found - expected).abs() <= tolerance, "{context}: {found}, expected {expected}");
}
