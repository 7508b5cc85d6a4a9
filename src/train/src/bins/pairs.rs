//! Makes training rows from pairs of documents of the same query. Each feature of such a row is the difference
//! between the two documents' values, and the label is 1 if the first document is more relevant, otherwise 0. A
//! forest trained on these rows predicts which of two documents ranks higher.
//!
//! The number of pairs grows with the square of the query length. Each document is therefore paired with a limited
//! number of other documents, which are sampled with random numbers keyed by seed, query and document. A query with few
//! documents keeps all its pairs.

use super::binning::BinOptions;
use super::cuts::FeatureBins;
use super::load::{BinnedData, code_feature, kept_places, open_all};
use super::summary::ValueDistribution;
use planetree_base::error::{Error, Result};
use planetree_base::random::Stream;
use planetree_base::storage::interrupt;
use planetree_data::source::{LabelledData, LabelledRows};
use rayon::prelude::*;

const OF_PAIRS: u64 = 0x7372_6950;

/// Row numbers of two documents in a partition. The label is 1 if the first document is more relevant.
type RowPair = (u32, u32);

impl BinnedData {
    /// Bins document pairs. For each document, up to `per_document` partners with a different label are sampled.
    /// Missing values are filled before the differences are computed.
    pub fn of_pairs(
        source: &LabelledData,
        options: &BinOptions,
        per_document: u32,
        seed: u64,
    ) -> Result<Self> {
        let (groups, documents) = open_all(source)?;
        let pairs: Vec<Vec<Vec<RowPair>>> =
            documents.par_iter().map(|rows| draw_pairs(rows, per_document as usize, seed)).collect();
        let count: usize = pairs.iter().flatten().map(Vec::len).sum();
        if count == 0 {
            return Err(Error::place(
                source.place(),
                "no query has documents with different labels: there are no pairs to learn from",
                "train on queries with different labels, or set pairs_per_document=0",
            ));
        }
        let rows = rows_of_pairs(&documents, &pairs);
        let (keep, keep_pairs) = (options.keep(source.row_count()), options.keep(count as u64));
        let (kept, kept_pairs) = (kept_places(keep, &documents), kept_places(keep_pairs, &rows));
        let coded = (0..source.features()).into_par_iter().map(|feature| {
            interrupt::check()?;
            let mut values = Vec::with_capacity(groups.len());
            for group in &groups {
                values.push(source.values(group, feature)?);
            }
            let normalised = options.of_feature(source, feature).normalised(&values, &documents);
            let compared = normalised.as_ref().unwrap_or(&values);
            let summaries = compared
                .iter()
                .zip(&kept)
                .map(|(values, kept)| ValueDistribution::of(values, kept.as_deref()));
            let fill = options.bins(&ValueDistribution::merge_all(summaries.collect())).fill;
            let differences = compared.iter().zip(&pairs);
            let differences: Vec<Vec<f32>> =
                differences.map(|(values, pairs)| differences_of(values, fill, pairs)).collect();
            let (bins, codes) = code_feature(&differences, &kept_pairs, options);
            if !bins.is_constant() {
                groups.iter().zip(&values).for_each(|(group, values)| source.hash(group, feature, values));
            }
            Ok((FeatureBins { fill, ..bins }, codes))
        });
        let mut features = Vec::with_capacity(source.features());
        let mut by_partition: Vec<Vec<_>> = rows.iter().map(|_| Vec::new()).collect();
        for (bins, codes) in coded.collect::<Result<Vec<_>>>()? {
            features.push(bins);
            let mut codes = codes.into_iter();
            by_partition.iter_mut().for_each(|columns| columns.push(codes.next()));
        }
        let binning = options.binning(features);
        let partitions = by_partition.into_par_iter().zip(&rows);
        let partitions: Vec<_> =
            partitions.map(|(columns, rows)| binning.assemble_codes(columns, rows.len())).collect();
        Ok(BinnedData::of_memory(binning, rows, partitions))
    }
}

/// Draws the document pairs of a partition. Returns one list of pairs per query.
fn draw_pairs(rows: &LabelledRows, per_document: usize, seed: u64) -> Vec<Vec<RowPair>> {
    let draw = |(number, query): (u64, std::ops::Range<usize>)| {
        let labels = &rows.labels[query.clone()];
        let mut pairs: Vec<RowPair> = Vec::new();
        let mut others: Vec<u32> = Vec::new();
        for (document, label) in labels.iter().enumerate() {
            let document = document as u32;
            others.clear();
            others.extend((0..labels.len() as u32).filter(|other| labels[*other as usize] != *label));
            let wanted = per_document.min(others.len());
            if wanted < others.len() {
                let mut stream = Stream::new(&[seed, OF_PAIRS, rows.first_query + number, document.into()]);
                for place in 0..wanted {
                    let other = place + (stream.uniform() * (others.len() - place) as f64) as usize;
                    others.swap(place, other);
                }
            }
            let partners = others[..wanted].iter();
            pairs.extend(partners.map(|other| (document.min(*other), document.max(*other))));
        }
        pairs.sort_unstable();
        pairs.dedup(); // two documents may have sampled each other
        // Put the two documents of a pair in random order, so that both labels are equally likely.
        let first = query.start as u32;
        let turn = |(one, other): RowPair| {
            let key = [seed, OF_PAIRS, rows.first_query + number, u64::from(one) << 32 | u64::from(other)];
            let (one, other) = (first + one, first + other);
            if Stream::new(&key).bits() & 1 == 1 { (other, one) } else { (one, other) }
        };
        pairs.into_iter().map(turn).collect()
    };
    (0..).zip(rows.queries()).map(draw).collect()
}

/// Converts pairs to training rows. Each pair stays in its query, and its weight is the mean of the two documents'
/// weights.
fn rows_of_pairs(documents: &[LabelledRows], pairs: &[Vec<Vec<RowPair>>]) -> Vec<LabelledRows> {
    let mut first = 0;
    let rows = documents.iter().zip(pairs).map(|(documents, queries)| {
        let mut query_bounds = vec![0u32];
        let all = || queries.iter().flatten();
        query_bounds.extend(queries.iter().scan(0, |end, pairs| {
            *end += pairs.len() as u32;
            Some(*end)
        }));
        let better =
            |(one, other): &RowPair| documents.labels[*one as usize] > documents.labels[*other as usize];
        let mean = |weights: &Vec<f32>, (one, other): &RowPair| {
            f32::midpoint(weights[*one as usize], weights[*other as usize])
        };
        let weights = documents.weights.as_ref();
        let rows = LabelledRows {
            first,
            first_query: documents.first_query,
            labels: all().map(|pair| if better(pair) { 1.0 } else { 0.0 }).collect(),
            weights: weights.map(|weights| all().map(|pair| mean(weights, pair)).collect()),
            positions: None,
            query_bounds,
            query_keys: documents.query_keys.clone(),
        };
        first += rows.len() as u64;
        rows
    });
    rows.collect()
}

/// Computes a feature's value for each pair: the difference between the two documents' values. The difference is
/// missing (NaN) if a value is missing and `fill` is `None`.
fn differences_of(values: &[f32], fill: Option<f32>, pairs: &[Vec<RowPair>]) -> Vec<f32> {
    let filled = |row: u32| {
        let value = values[row as usize];
        if value.is_nan() { fill.unwrap_or(f32::NAN) } else { value }
    };
    let difference = |(one, other): &RowPair| {
        let difference = filled(*one) - filled(*other);
        // The difference between two huge numbers may overflow to infinity.
        if difference.is_infinite() { difference.signum() * f32::MAX } else { difference }
    };
    pairs.iter().flatten().map(difference).collect()
}
