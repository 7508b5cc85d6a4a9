//! What the classical sets look like, and queries drawn in their likeness.
//!
//! A document has three hidden traits: how well it fits the query, how good it is, how popular it
//! is. Features are noisy views of them through functions of their own: heavy-tailed counts with
//! many zeros, scores, ratios, flags, properties of the query alone. The label is a nonlinear
//! function of the traits with thresholds and interactions, plus the query's own level.

use super::text::{push_decimal, push_whole};
use planetree_base::random::Stream;

/// The sets that can be imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// LETOR 4: 46 features scaled to 0..1, labels 0-2, few documents a query
    Letor,
    /// MSLR-WEB: 136 raw features, labels 0-4, about 120 documents a query
    Mslr,
    /// Yahoo: 700 features of which two thirds are absent, labels 0-4, about 23 documents a query
    Yahoo,
}

/// The figures of a set.
struct Figures {
    features: usize,
    /// Mean and deviation of the logarithm of a query's documents, and their bounds.
    documents: (f64, f64, f64, f64),
    /// Share of documents at each label.
    labels: &'static [f64],
}

impl Shape {
    fn figures(self) -> Figures {
        match self {
            Shape::Letor => {
                Figures { features: 46, documents: (2.7, 0.65, 5.0, 120.0), labels: &[0.79, 0.14, 0.07] }
            }
            Shape::Mslr => Figures {
                features: 136,
                documents: (4.62, 0.55, 5.0, 900.0),
                labels: &[0.52, 0.32, 0.13, 0.02, 0.01],
            },
            Shape::Yahoo => Figures {
                features: 700,
                documents: (2.95, 0.6, 1.0, 139.0),
                labels: &[0.26, 0.36, 0.28, 0.08, 0.02],
            },
        }
    }
}

/// How a feature sees a document.
struct View {
    kind: Kind,
    /// Weights of fit, goodness, popularity, the query's own level, and noise.
    weights: [f64; 5],
    /// Chance that the feature says nothing about a document: 0, or absent.
    silent: f64,
    /// Features of one source fall silent together.
    source: usize,
    scale: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Count,
    Score,
    Ratio,
    Flag,
    OfQuery,
}

/// Sources that may be silent about a document.
const SOURCES: usize = 12;
/// What keys of random streams are for.
const FOR_VIEWS: u64 = 1;
const FOR_QUERY: u64 = 2;
const FOR_DOCUMENT: u64 = 3;
const FOR_THRESHOLDS: u64 = 4;

/// Draws queries of a shape.
pub struct Generator {
    shape: Shape,
    seed: u64,
    figures: Figures,
    views: Vec<View>,
    /// Utility from which each label above 0 begins.
    thresholds: Vec<f64>,
}

/// The hidden traits of a document.
struct Traits {
    fit: f64,
    good: f64,
    popular: f64,
}

impl Generator {
    /// The views are the shape's own, the same for every seed: another seed is more of the same.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let figures = shape.figures();
        let views = (0..figures.features).map(|feature| View::of(shape, feature)).collect();
        let thresholds = thresholds(figures.labels);
        Generator { shape, seed, figures, views, thresholds }
    }

    /// A query: how many documents, and their lines.
    pub fn query(&self, query: u64) -> (u64, Vec<u8>) {
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
        let sources: [bool; SOURCES] =
            std::array::from_fn(|source| draw.uniform() < source_silence(self.shape, source));
        for (feature, view) in self.views.iter().enumerate() {
            let silent = draw.uniform() < view.silent || sources[view.source];
            let value = view.value(traits, query_level, draw);
            let value = if silent && view.kind != Kind::OfQuery { 0.0 } else { value };
            if self.shape == Shape::Yahoo && value == 0.0 {
                continue;
            }
            out.push(b' ');
            push_whole(feature as u64 + 1, out);
            out.push(b':');
            match self.shape {
                Shape::Letor => push_decimal(view.squashed(value), false, out),
                Shape::Mslr => push_decimal(value, true, out),
                Shape::Yahoo => push_decimal(view.squashed(value).max(1e-5), true, out),
            }
        }
    }
}

fn source_silence(shape: Shape, source: usize) -> f64 {
    let share = source as f64 / SOURCES as f64;
    match shape {
        Shape::Letor => 0.3 * share,
        Shape::Mslr => 0.35 * share * share,
        Shape::Yahoo => 0.25 + 0.65 * share,
    }
}

impl View {
    fn of(shape: Shape, feature: usize) -> Self {
        let mut draw = Stream::new(&[FOR_VIEWS, shape as u64, feature as u64]);
        let kind = match draw.uniform() {
            share if share < 0.35 => Kind::Count,
            share if share < 0.65 => Kind::Score,
            share if share < 0.80 => Kind::Ratio,
            share if share < 0.92 => Kind::Flag,
            _ => Kind::OfQuery,
        };
        // Most features look at one trait above all, some at two, a few at none.
        let mut weights = [0.0; 5];
        let main = (draw.uniform() * 3.4) as usize;
        if main < 3 {
            weights[main] = 0.5 + draw.uniform();
        }
        weights[(draw.uniform() * 3.0) as usize] += 0.4 * draw.uniform();
        weights[3] = 0.5 * draw.uniform();
        weights[4] = 0.3 + 0.9 * draw.uniform();
        let silent = match shape {
            Shape::Mslr => 0.45 * draw.uniform(),
            Shape::Letor => 0.4 * draw.uniform(),
            Shape::Yahoo => 0.5 * draw.uniform(),
        };
        let source = (draw.uniform() * SOURCES as f64) as usize;
        let scale = libm::exp(1.5 * draw.normal());
        View { kind, weights, silent, source, scale }
    }

    /// A value of any size to 0..1, greater ones to greater ones, silence to zero.
    fn squashed(&self, value: f64) -> f64 {
        let folded = value / (1.0 + value.abs());
        match self.kind {
            Kind::Score if value != 0.0 => 0.5 + 0.5 * folded,
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
            Kind::Count => libm::floor(libm::exp(1.2 * seen + 1.0) * self.scale.max(0.3)),
            Kind::Score => self.scale * (seen + 0.25 * seen * seen * seen.signum()),
            Kind::Ratio => 1.0 / (1.0 + libm::exp(-1.7 * seen)),
            Kind::Flag => f64::from(seen > 0.4),
            Kind::OfQuery => self.scale * (query_level + 3.0).max(0.0),
        }
    }
}

impl Traits {
    fn draw(draw: &mut Stream) -> Self {
        let (fit, own_good, popular) = (draw.normal(), draw.normal(), draw.normal());
        Traits { fit, good: 0.5 * popular + 0.87 * own_good, popular }
    }

    /// How useful a document is: saturations, a threshold, interactions, and a part that rises
    /// and falls.
    fn utility(&self) -> f64 {
        let fits = 1.0 / (1.0 + libm::exp(-2.0 * self.fit));
        1.3 * libm::tanh(self.fit)
            + 0.9 * fits * libm::tanh(self.good)
            + if self.fit > 0.5 && self.good > 0.0 { 0.6 } else { 0.0 }
            - if self.popular < -0.8 { 0.4 } else { 0.0 }
            + 0.35 * libm::sin(1.6 * self.popular) * fits
    }
}

/// What all documents of a query share: its difficulty, and for some that nothing is relevant.
fn query_utility(draw: &mut Stream) -> f64 {
    let level = 0.5 * draw.normal();
    if draw.uniform() < 0.03 { level - 25.0 } else { level }
}

/// The utilities from which labels begin, so that labels have about their shares.
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

    fn text(shape: Shape, seed: u64, queries: u64) -> String {
        let generator = Generator::new(shape, seed);
        let lines: Vec<u8> = (1..=queries).flat_map(|query| generator.query(query).1).collect();
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn labels_have_about_the_shares_of_the_classical_set() {
        for shape in [Shape::Letor, Shape::Mslr, Shape::Yahoo] {
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
    fn sparse_shapes_are_sparse_and_dense_ones_have_zeros() {
        let entries =
            |text: &str| text.lines().map(|line| line.matches(':').count() - 1).sum::<usize>() as f64;
        let yahoo = text(Shape::Yahoo, 1, 60);
        let present = entries(&yahoo) / (700.0 * yahoo.lines().count() as f64);
        assert!((0.25..0.42).contains(&present), "{present}");
        let mslr = text(Shape::Mslr, 1, 10);
        assert_eq!(entries(&mslr), 136.0 * mslr.lines().count() as f64);
        let zeros = mslr.matches(":0 ").count() as f64 / entries(&mslr);
        assert!((0.25..0.5).contains(&zeros), "{zeros}");
    }

    #[test]
    fn a_seed_gives_the_same_text_and_another_seed_another() {
        assert_eq!(text(Shape::Letor, 3, 5), text(Shape::Letor, 3, 5));
        assert_ne!(text(Shape::Letor, 3, 5), text(Shape::Letor, 4, 5));
    }
}
