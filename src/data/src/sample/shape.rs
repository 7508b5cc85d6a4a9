//! Generates queries with the characteristics of well-known datasets.
//!
//! A document has three latent traits: how well it matches the query, its quality, and its popularity. Features are
//! noisy functions of these traits: heavy-tailed counts with many zeros, scores, ratios and flags. Some features
//! depend only on the query. The utility of a document is a nonlinear function of the traits with thresholds and
//! interactions, plus a random amount per query. The label is derived from the utility.

use super::text::{push_decimal, push_whole};
use planetree_base::random::Stream;

/// The well-known datasets that can be imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleShape {
    /// LETOR 4: 46 features scaled to 0..1, labels 0-2, few documents per query.
    Letor,
    /// MSLR-WEB: 136 raw features, labels 0-4, about 120 documents per query.
    Mslr,
    /// Yahoo: 700 features, two thirds of them absent, labels 0-4, about 23 documents per query.
    Yahoo,
}

/// Characteristics of a dataset.
struct ShapeFigures {
    features: usize,
    /// The distribution of the number of documents per query: mean and standard deviation of its logarithm, minimum
    /// and maximum.
    documents: (f64, f64, f64, f64),
    /// Fraction of documents with each label, from label 0 on.
    labels: &'static [f64],
}

impl SampleShape {
    fn figures(self) -> ShapeFigures {
        match self {
            SampleShape::Letor => {
                ShapeFigures { features: 46, documents: (2.7, 0.65, 5.0, 120.0), labels: &[0.79, 0.14, 0.07] }
            }
            SampleShape::Mslr => ShapeFigures {
                features: 136,
                documents: (4.62, 0.55, 5.0, 900.0),
                labels: &[0.52, 0.32, 0.13, 0.02, 0.01],
            },
            SampleShape::Yahoo => ShapeFigures {
                features: 700,
                documents: (2.95, 0.6, 1.0, 139.0),
                labels: &[0.26, 0.36, 0.28, 0.08, 0.02],
            },
        }
    }
}

/// Describes how the values of a feature depend on the traits of a document.
struct FeatureView {
    kind: Distribution,
    /// Weights of the match with the query, the quality, the popularity, the level of the query (a random number per
    /// query), and the noise.
    weights: [f64; 5],
    /// Probability that the value of a document is 0 or absent ("silent").
    silent: f64,
    /// Index of the feature's group. In some documents, all features of a group are zero.
    group: usize,
    scale: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Distribution {
    Count,
    Score,
    Ratio,
    Flag,
    OfQuery,
}

/// Number of groups of features that are zero together in some documents.
const SILENT_GROUPS: usize = 12;
/// Keys that distinguish random streams by their purpose.
const FOR_VIEWS: u64 = 1;
const FOR_QUERY: u64 = 2;
const FOR_DOCUMENT: u64 = 3;
const FOR_THRESHOLDS: u64 = 4;

/// Generates queries that resemble a well-known dataset.
pub(super) struct Generator {
    shape: SampleShape,
    seed: u64,
    figures: ShapeFigures,
    views: Vec<FeatureView>,
    /// Minimum utility of a document for each label above 0.
    thresholds: Vec<f64>,
}

/// Latent traits of a document: match with the query, quality and popularity.
struct Traits {
    fit: f64,
    good: f64,
    popular: f64,
}

impl Generator {
    /// Creates a generator. The definition of the features depends only on the shape, so data with different seeds
    /// have the same distribution.
    pub(super) fn new(shape: SampleShape, seed: u64) -> Self {
        let figures = shape.figures();
        let views = (0..figures.features).map(|feature| FeatureView::of(shape, feature)).collect();
        let thresholds = thresholds(figures.labels);
        Generator { shape, seed, figures, views, thresholds }
    }

    /// Generates the query with the given number. Returns the number of documents, and the text with one line per
    /// document.
    pub(super) fn query(&self, query: u64) -> (u64, Vec<u8>) {
        let mut draw = Stream::new(&[self.seed, FOR_QUERY, query]);
        let (mean, deviation, least, most) = self.figures.documents;
        let documents = libm::exp(mean + deviation * draw.normal()).round().clamp(least, most) as u64;
        let query_level = draw.normal();
        let utility_level = query_utility(&mut draw);
        let mut out = Vec::with_capacity(documents as usize * self.figures.features * 8);
        for document in 0..documents {
            let mut draw = Stream::new(&[self.seed, FOR_DOCUMENT, query, document]);
            let traits = Traits::draw(&mut draw);
            let utility = traits.utility() + utility_level + 0.35 * draw.normal();
            let label = self.thresholds.iter().filter(|threshold| utility > **threshold).count();
            push_whole(label as u64, &mut out);
            out.extend_from_slice(b" qid:");
            push_whole(query, &mut out);
            self.push_features(&traits, query_level, &mut draw, &mut out);
            out.extend_from_slice(b" #docid = Q");
            push_whole(query, &mut out);
            out.extend_from_slice(b"-D");
            push_whole(document, &mut out);
            out.push(b'\n');
        }
        (documents, out)
    }

    fn push_features(&self, traits: &Traits, query_level: f64, draw: &mut Stream, out: &mut Vec<u8>) {
        let silent_groups: [bool; SILENT_GROUPS] =
            std::array::from_fn(|group| draw.uniform() < group_silence(self.shape, group));
        for (feature, view) in self.views.iter().enumerate() {
            let silent = draw.uniform() < view.silent || silent_groups[view.group];
            let value = view.value(traits, query_level, draw);
            let value = if silent && view.kind != Distribution::OfQuery { 0.0 } else { value };
            if self.shape == SampleShape::Yahoo && value == 0.0 {
                continue;
            }
            out.push(b' ');
            push_whole(feature as u64 + 1, out);
            out.push(b':');
            match self.shape {
                SampleShape::Letor => push_decimal(view.squashed(value), false, out),
                SampleShape::Mslr => push_decimal(value, true, out),
                SampleShape::Yahoo => push_decimal(view.squashed(value).max(1e-5), true, out),
            }
        }
    }
}

fn group_silence(shape: SampleShape, group: usize) -> f64 {
    let share = group as f64 / SILENT_GROUPS as f64;
    match shape {
        SampleShape::Letor => 0.3 * share,
        SampleShape::Mslr => 0.35 * share * share,
        SampleShape::Yahoo => 0.25 + 0.65 * share,
    }
}

impl FeatureView {
    fn of(shape: SampleShape, feature: usize) -> Self {
        let mut draw = Stream::new(&[FOR_VIEWS, shape as u64, feature as u64]);
        let kind = match draw.uniform() {
            share if share < 0.35 => Distribution::Count,
            share if share < 0.65 => Distribution::Score,
            share if share < 0.80 => Distribution::Ratio,
            share if share < 0.92 => Distribution::Flag,
            _ => Distribution::OfQuery,
        };
        // Most features depend mainly on one trait, some depend on two traits, and a few on none.
        let mut weights = [0.0; 5];
        let main = (draw.uniform() * 3.4) as usize;
        if main < 3 {
            weights[main] = 0.5 + draw.uniform();
        }
        weights[(draw.uniform() * 3.0) as usize] += 0.4 * draw.uniform();
        weights[3] = 0.5 * draw.uniform();
        weights[4] = 0.3 + 0.9 * draw.uniform();
        let silent = match shape {
            SampleShape::Mslr => 0.45 * draw.uniform(),
            SampleShape::Letor => 0.4 * draw.uniform(),
            SampleShape::Yahoo => 0.5 * draw.uniform(),
        };
        let group = (draw.uniform() * SILENT_GROUPS as f64) as usize;
        let scale = libm::exp(1.5 * draw.normal());
        FeatureView { kind, weights, silent, group, scale }
    }

    /// Maps a value to the range from 0 to 1. The value 0 remains 0, and otherwise the mapping is monotonic.
    fn squashed(&self, value: f64) -> f64 {
        let folded = value / (1.0 + value.abs());
        match self.kind {
            Distribution::Score if value != 0.0 => 0.5 + 0.5 * folded,
            _ => folded,
        }
    }

    fn value(&self, traits: &Traits, query_level: f64, draw: &mut Stream) -> f64 {
        let [fit, good, popular, of_query, noise] = self.weights;
        let seen = fit * traits.fit
            + good * traits.good
            + popular * traits.popular
            + of_query * query_level
            + noise * draw.normal();
        match self.kind {
            Distribution::Count => libm::floor(libm::exp(1.2 * seen + 1.0) * self.scale.max(0.3)),
            Distribution::Score => self.scale * (seen + 0.25 * seen * seen * seen.signum()),
            Distribution::Ratio => 1.0 / (1.0 + libm::exp(-1.7 * seen)),
            Distribution::Flag => f64::from(seen > 0.4),
            Distribution::OfQuery => self.scale * (query_level + 3.0).max(0.0),
        }
    }
}

impl Traits {
    fn draw(draw: &mut Stream) -> Self {
        let (fit, own_good, popular) = (draw.normal(), draw.normal(), draw.normal());
        Traits { fit, good: 0.5 * popular + 0.87 * own_good, popular }
    }

    /// Computes the utility of a document, with saturating terms, thresholds, interactions, and a term that is not
    /// monotonic.
    fn utility(&self) -> f64 {
        let fits = 1.0 / (1.0 + libm::exp(-2.0 * self.fit));
        1.3 * libm::tanh(self.fit)
            + 0.9 * fits * libm::tanh(self.good)
            + if self.fit > 0.5 && self.good > 0.0 { 0.6 } else { 0.0 }
            - if self.popular < -0.8 { 0.4 } else { 0.0 }
            + 0.35 * libm::sin(1.6 * self.popular) * fits
    }
}

/// Draws the amount that is added to the utility of every document of a query. It models how hard the query is. For 3
/// % of the queries, it is so low that no document is relevant.
fn query_utility(draw: &mut Stream) -> f64 {
    let level = 0.5 * draw.normal();
    if draw.uniform() < 0.03 { level - 25.0 } else { level }
}

/// Computes the utility thresholds between labels, so that the labels have approximately the frequencies `shares`.
/// The thresholds are quantiles of the utilities of 20,000 random documents.
fn thresholds(shares: &[f64]) -> Vec<f64> {
    const DRAWS: usize = 20_000;
    let mut utilities: Vec<f64> = (0..DRAWS)
        .map(|number| {
            let mut draw = Stream::new(&[FOR_THRESHOLDS, number as u64]);
            let level = query_utility(&mut draw);
            let traits = Traits::draw(&mut draw);
            traits.utility() + level + 0.35 * draw.normal()
        })
        .collect();
    utilities.sort_unstable_by(f64::total_cmp);
    let mut below = 0.0;
    shares[..shares.len() - 1]
        .iter()
        .map(|share| {
            below += share;
            utilities[((below * DRAWS as f64) as usize).min(DRAWS - 1)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(shape: SampleShape, seed: u64, queries: u64) -> String {
        let generator = Generator::new(shape, seed);
        let lines: Vec<u8> = (1..=queries).flat_map(|query| generator.query(query).1).collect();
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn label_fractions_resemble_the_imitated_dataset() {
        for shape in [SampleShape::Letor, SampleShape::Mslr, SampleShape::Yahoo] {
            let text = text(shape, 7, 300);
            let rows = text.lines().count() as f64;
            for (label, share) in shape.figures().labels.iter().enumerate() {
                let found =
                    text.lines().filter(|line| line.starts_with(&format!("{label} "))).count() as f64 / rows;
                assert!((found - share).abs() < 0.06, "{shape:?} label {label}: {found} for {share}");
            }
        }
    }

    #[test]
    fn sparse_shapes_are_sparse_and_dense_shapes_have_zeros() {
        let entries =
            |text: &str| text.lines().map(|line| line.matches(':').count() - 1).sum::<usize>() as f64;
        let yahoo = text(SampleShape::Yahoo, 1, 60);
        let present = entries(&yahoo) / (700.0 * yahoo.lines().count() as f64);
        assert!((0.25..0.42).contains(&present), "{present}");
        let mslr = text(SampleShape::Mslr, 1, 10);
        assert_eq!(entries(&mslr), 136.0 * mslr.lines().count() as f64);
        let zeros = mslr.matches(":0 ").count() as f64 / entries(&mslr);
        assert!((0.25..0.5).contains(&zeros), "{zeros}");
    }

    #[test]
    fn text_depends_on_the_seed() {
        assert_eq!(text(SampleShape::Letor, 3, 5), text(SampleShape::Letor, 3, 5));
        assert_ne!(text(SampleShape::Letor, 3, 5), text(SampleShape::Letor, 4, 5));
    }
}
