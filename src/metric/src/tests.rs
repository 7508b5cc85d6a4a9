//! Tests every metric under every convention against its literal definition: all orders of ties are enumerated, and
//! each order is evaluated by the published formula.

use super::convention::switches;
use super::*;
use proptest::prelude::*;

const METRICS: [&str; 24] = [
    "success@2",
    "success",
    "ndcg",
    "ndcg@1",
    "ndcg@3",
    "ndcg@9",
    "dcg",
    "dcg@2",
    "err",
    "err@2",
    "map",
    "map@2",
    "map@9",
    "mrr",
    "mrr@2",
    "p",
    "p@2",
    "p@9",
    "recall@2",
    "auc",
    "pauc@0-30",
    "pauc@20-100",
    "tau",
    "inversions",
];

#[derive(Debug, Clone)]
struct TestQuery {
    labels: Vec<f32>,
    scores: Vec<f64>,
    documents: Vec<String>,
    judged: Option<Vec<f32>>,
}

impl TestQuery {
    fn of(labels: &[f32], scores: &[f64]) -> Self {
        let documents = (0..labels.len()).map(|place| format!("d{place}")).collect();
        TestQuery { labels: labels.to_vec(), scores: scores.to_vec(), documents, judged: None }
    }

    fn judge(&self, metrics: &[&str], convention: &Convention) -> Vec<Option<f64>> {
        let metrics: Vec<Metric> = metrics.iter().map(|name| name.parse().unwrap()).collect();
        let documents: Vec<&str> = self.documents.iter().map(String::as_str).collect();
        let rows = QueryRows {
            labels: &self.labels,
            scores: &self.scores,
            documents: Some(&documents),
            judged: self.judged.as_deref(),
        };
        Judge::new(&metrics, convention).query(&rows).unwrap().to_vec()
    }

    fn value(&self, metric: &str, convention: &str) -> Option<f64> {
        self.judge(&[metric], &convention.parse().unwrap())[0]
    }

    /// Returns the labels that determine the ideal order.
    fn ideal_labels(&self, convention: &Convention) -> &[f32] {
        match (&self.judged, convention.ideal) {
            (Some(judged), Ideal::Judgments) => judged,
            _ => &self.labels,
        }
    }

    fn compared(&self, convention: &Convention) -> Vec<f64> {
        let round =
            |score: &f64| if convention.scores == Width::Float32 { f64::from(*score as f32) } else { *score };
        self.scores.iter().map(round).collect()
    }
}

/// Returns all orders of the document indices in which scores never increase.
fn orders(scores: &[f64]) -> Vec<Vec<usize>> {
    if scores.is_empty() {
        return vec![vec![]];
    }
    fn extend(scores: &[f64], order: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
        let left =
            |order: &[usize]| (0..scores.len()).filter(|place| !order.contains(place)).collect::<Vec<_>>();
        let left = left(order);
        if left.is_empty() {
            all.push(order.clone());
        }
        let most = left.iter().map(|place| scores[*place]).fold(f64::NEG_INFINITY, f64::max);
        for place in left {
            if scores[place] == most {
                order.push(place);
                extend(scores, order, all);
                order.pop();
            }
        }
    }
    let mut all = Vec::new();
    extend(scores, &mut Vec::new(), &mut all);
    all
}

/// Evaluates a metric on labels with ranks. Ranks count from 1, and several labels may share a rank.
fn of_ranks(metric: &Metric, convention: &Convention, query: &TestQuery, ranked: &[(usize, f32)]) -> f64 {
    let n = ranked.len();
    let k = convention.depth(metric).unwrap().map_or(usize::MAX, |k| k as usize);
    let seen: Vec<(usize, f32)> = ranked.iter().copied().filter(|(rank, _)| *rank <= k).collect();
    let relevant =
        |labels: &[(usize, f32)]| labels.iter().filter(|(_, l)| convention.is_relevant(*l)).count() as f64;
    let all = query.ideal_labels(convention).iter().filter(|l| convention.is_relevant(**l)).count() as f64;
    let dcg = |seen: &[(usize, f32)]| -> f64 {
        seen.iter().map(|(rank, label)| convention.gain(*label) * convention.discount(rank - 1)).sum()
    };
    let over = |k: usize| if k == usize::MAX || convention.short == Short::Truncate { k.min(n) } else { k };
    let is_zero = k != usize::MAX && k > n && convention.short == Short::Zero;
    match metric {
        Metric::Dcg(_) | Metric::Ndcg(_) if is_zero => 0.0,
        Metric::Dcg(_) => dcg(&seen),
        Metric::Ndcg(_) => {
            let mut best = query.ideal_labels(convention).to_vec();
            best.sort_by(|a, b| convention.gain(*b).total_cmp(&convention.gain(*a)));
            let best: Vec<(usize, f32)> =
                best.into_iter().enumerate().map(|(place, l)| (place + 1, l)).collect();
            dcg(&seen) / dcg(&best[..k.min(best.len())])
        }
        Metric::Err(_) => {
            let satisfies = |label: f32| match convention.err_grade {
                ErrGrade::Label => f64::from(label.clamp(0.0, 1.0)),
                ErrGrade::Highest(grade) => {
                    (f64::from(label.clamp(0.0, grade as f32)).exp2() - 1.0) / f64::from(grade).exp2()
                }
            };
            let reading_at = |rank: usize| {
                ranked.iter().filter(|(r, _)| *r < rank).map(|(_, l)| 1.0 - satisfies(*l)).product::<f64>()
            };
            let mut ranks: Vec<usize> = seen.iter().map(|(rank, _)| *rank).collect();
            ranks.dedup();
            ranks.iter().map(|rank| (reading_at(*rank) - reading_at(rank + 1)) / *rank as f64).sum()
        }
        Metric::Precision(_) => relevant(&seen) / over(k).max(1) as f64,
        Metric::Recall(_) => relevant(&seen) / all,
        Metric::RPrecision => {
            let top: Vec<(usize, f32)> =
                ranked.iter().copied().filter(|(rank, _)| *rank as f64 <= all).collect();
            relevant(&top) / all
        }
        Metric::Success(_) => f64::from(relevant(&seen) > 0.0),
        Metric::Mrr(_) => {
            let first = seen.iter().find(|(_, label)| convention.is_relevant(*label));
            first.map_or(0.0, |(rank, _)| 1.0 / *rank as f64)
        }
        Metric::Map(_) => {
            let at = |rank: usize| {
                let until: Vec<(usize, f32)> = ranked.iter().copied().filter(|(r, _)| *r <= rank).collect();
                relevant(&until) / rank as f64
            };
            let hits = seen.iter().filter(|(_, label)| convention.is_relevant(*label));
            let sum: f64 = hits.map(|(rank, _)| at(*rank)).sum();
            let over = match convention.map_normaliser {
                MapNormaliser::Relevant => all,
                MapNormaliser::Depth => all.min(k as f64),
                MapNormaliser::Found => relevant(&seen),
            };
            if sum == 0.0 { 0.0 } else { sum / over }
        }
        _ => unreachable!(),
    }
}

/// Evaluates a pairwise metric. Pairs are counted by comparing all of them, and the area under the curve is the sum
/// of thousands of thin slices.
fn of_pairs(metric: &Metric, convention: &Convention, query: &TestQuery) -> Option<f64> {
    let scores = query.compared(convention);
    let labels = &query.labels;
    let pairs = || (0..labels.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let product = |(i, j): (usize, usize)| {
        let sign = |left: f64, right: f64| {
            if left > right {
                1.0
            } else if left < right {
                -1.0
            } else {
                0.0
            }
        };
        (sign(labels[i].into(), labels[j].into()), sign(scores[i], scores[j]))
    };
    let tied = |ties: Ties| match ties {
        Ties::Worst => 1.0,
        Ties::Best => 0.0,
        _ => 0.5,
    };
    match metric {
        Metric::Inversions => Some(
            pairs()
                .map(product)
                .map(|(label, score)| {
                    if label * score < 0.0 {
                        1.0
                    } else if label != 0.0 && score == 0.0 {
                        tied(convention.ties)
                    } else {
                        0.0
                    }
                })
                .sum(),
        ),
        Metric::KendallTau => {
            let sum: f64 = pairs().map(product).map(|(label, score)| label * score).sum();
            let by_label: f64 = pairs().map(product).map(|(label, _)| label.abs()).sum();
            let by_score: f64 = pairs().map(product).map(|(_, score)| score.abs()).sum();
            (by_label > 0.0 && by_score > 0.0).then(|| sum / (by_label * by_score).sqrt())
        }
        _ => {
            let (from, to) = match metric {
                Metric::PartialAuc(from, to) => (f64::from(*from) / 100.0, f64::from(*to) / 100.0),
                _ => (0.0, 1.0),
            };
            let rows = |relevant: bool| {
                let keep = move |place: &usize| convention.is_relevant(labels[*place]) == relevant;
                (0..labels.len()).filter(keep).collect::<Vec<_>>()
            };
            let (positive, mut negative) = (rows(true), rows(false));
            negative.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            let slices = 4200; // divisible by every number of documents used here, and by 100
            let rate = |slice: usize| {
                let at = (slice as f64 + 0.5) / slices as f64;
                if at < from || at > to {
                    return 0.0;
                }
                let wrong = at * negative.len() as f64;
                let place = wrong as usize;
                let score = scores[negative[place]];
                let equal = negative.iter().filter(|n| scores[**n] == score).count() as f64;
                let above = negative.iter().filter(|n| scores[**n] > score).count() as f64;
                let share = match convention.binary_ties {
                    Ties::Worst => 0.0,
                    Ties::Best => 1.0,
                    _ => (wrong - above) / equal,
                };
                let found = positive.iter().map(|p| {
                    if scores[*p] > score {
                        1.0
                    } else if scores[*p] == score {
                        share
                    } else {
                        0.0
                    }
                });
                found.sum::<f64>() / positive.len() as f64
            };
            let has_pairs = !positive.is_empty() && !negative.is_empty();
            let area = has_pairs.then(|| (0..slices).map(rate).sum::<f64>() / slices as f64);
            match convention.pauc {
                PartialArea::Standardised => area.map(|area| {
                    let least = (to * to - from * from) / 2.0;
                    0.5 * (1.0 + (area - least) / (to - from - least))
                }),
                PartialArea::Area => area,
            }
        }
    }
}

/// Returns the value that the convention sets for a query without relevant documents; `None` if it sets none for this
/// query.
fn of_empty(metric: &Metric, convention: &Convention, query: &TestQuery) -> Option<Option<f64>> {
    let labels = query.ideal_labels(convention);
    let none_relevant = !labels.iter().any(|label| convention.is_relevant(*label));
    let nothing_worth = !labels.iter().any(|label| convention.gain(*label) > 0.0);
    let value = |empty: Empty| match empty {
        Empty::Value(value) => Some(value),
        Empty::Skip => None,
    };
    match metric {
        Metric::Ndcg(_) if nothing_worth => Some(value(convention.empty)),
        Metric::Map(_) if none_relevant => Some(value(convention.map_empty)),
        Metric::Recall(_) | Metric::RPrecision if none_relevant => Some(value(convention.recall_empty)),
        Metric::Dcg(_) | Metric::Err(_) if nothing_worth && convention.empty == Empty::Skip => Some(None),
        Metric::Mrr(_) | Metric::Precision(_) | Metric::Success(_)
            if none_relevant && convention.empty == Empty::Skip =>
        {
            Some(None)
        }
        _ => None,
    }
}

/// Naive reference implementation of `Judge`.
fn slowly(metric: &Metric, convention: &Convention, query: &TestQuery) -> Option<f64> {
    if let Some(value) = of_empty(metric, convention, query) {
        return value;
    }
    let ties = match metric {
        Metric::Ndcg(_) | Metric::Dcg(_) | Metric::Err(_) => convention.ties,
        Metric::Map(_)
        | Metric::Mrr(_)
        | Metric::Precision(_)
        | Metric::Recall(_)
        | Metric::RPrecision
        | Metric::Success(_) => convention.binary_ties,
        _ => return of_pairs(metric, convention, query),
    };
    let scores = query.compared(convention);
    let value = |order: &Vec<usize>| {
        let ranked: Vec<(usize, f32)> = (1..).zip(order.iter().map(|place| query.labels[*place])).collect();
        of_ranks(metric, convention, query, &ranked)
    };
    let sorted = |key: &dyn Fn(usize, usize) -> std::cmp::Ordering| {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].partial_cmp(&scores[*a]).unwrap().then(key(*a, *b)));
        order
    };
    let all = || orders(&scores).iter().map(value).collect::<Vec<f64>>();
    Some(match ties {
        Ties::Input => value(&sorted(&|a, b| a.cmp(&b))),
        Ties::Document => value(&sorted(&|a, b| query.documents[b].cmp(&query.documents[a]))),
        Ties::Average => {
            let all = all();
            all.iter().sum::<f64>() / all.len() as f64
        }
        Ties::Worst => all().into_iter().fold(f64::INFINITY, f64::min),
        Ties::Best => all().into_iter().fold(f64::NEG_INFINITY, f64::max),
        Ties::Last => {
            let mut ranked: Vec<(usize, f32)> = (0..scores.len())
                .map(|place| (scores.iter().filter(|s| **s >= scores[place]).count(), query.labels[place]))
                .collect();
            ranked.sort_by_key(|(rank, _)| *rank);
            of_ranks(metric, convention, query, &ranked)
        }
    })
}

fn any_query() -> impl Strategy<Value = TestQuery> {
    let label = prop_oneof![(0_u8..4).prop_map(f32::from), Just(0.0)];
    let score = prop_oneof![3 => (0_i8..3).prop_map(f64::from), 1 => Just(1.0 + 1e-12)];
    let documents = proptest::collection::vec((label.clone(), score), 0..6);
    let missed = proptest::option::of(proptest::collection::vec(label, 0..4));
    (documents, Just((0..6).map(|place| format!("d{place}")).collect::<Vec<_>>()).prop_shuffle(), missed)
        .prop_map(|(documents, mut ids, missed)| {
            let (labels, scores): (Vec<f32>, Vec<f64>) = documents.into_iter().unzip();
            ids.truncate(labels.len());
            let judged = missed.map(|missed| [&labels[..], &missed].concat());
            TestQuery { labels, scores, documents: ids, judged }
        })
}

/// Generates conventions: a preset, followed by values for some of the switches.
pub(crate) fn any_convention() -> impl Strategy<Value = String> {
    let values: [(&str, &[&str]); 19] = [
        ("gain", &["exp2", "linear", "positive", "0:1:3:5", "l^2", "0.5:0:2:1"]),
        ("discount", &["log2", "letor", "power:1", "power:0.5", "log2^2"]),
        ("depth", &["all", "2"]),
        ("binary_depth", &["all", "2"]),
        ("empty", &["0", "0.5", "1", "skip"]),
        ("map_empty", &["0", "1", "skip"]),
        ("recall_empty", &["0", "1", "skip"]),
        ("short", &["truncate", "pad", "zero"]),
        ("ties", &["input", "docid", "average", "worst", "best", "last"]),
        ("binary_ties", &["input", "docid", "average", "worst", "best", "last"]),
        ("relevant", &["1", "2", "above:0.5", "above:2"]),
        ("map_normaliser", &["relevant", "depth", "found"]),
        ("map_depth", &["k", "all"]),
        ("err_grade", &["4", "3", "2", "label"]),
        ("err_depth", &["all", "2"]),
        ("ideal", &["list", "judgments"]),
        ("scores", &["float64", "float32"]),
        ("auc", &["query", "pooled"]),
        ("pauc", &["area", "standardised"]),
    ];
    assert!(values.iter().map(|(name, _)| *name).eq(switches().iter().map(|switch| switch.name)));
    let some = values.map(|(name, values)| {
        let set = (0..values.len()).prop_map(move |number| format!("{name}={}", values[number]));
        proptest::option::of(set).boxed()
    });
    let preset =
        (0..Convention::presets().len()).prop_map(|number| Convention::presets()[number].name.to_owned());
    (preset, some.to_vec()).prop_map(|(preset, set)| {
        let set: Vec<String> = [preset].into_iter().chain(set.into_iter().flatten()).collect();
        set.join(",")
    })
}

/// Whether replacing a label by a higher one never lowers a metric, so that the worst order of labels gives the worst
/// value. That is not so for gains that do not grow with labels, nor for average precision divided by the number of
/// relevant documents found.
fn is_monotone(convention: &Convention) -> bool {
    let grows = (0..3_u8).all(|l| convention.gain(f32::from(l)) <= convention.gain(f32::from(l + 1)));
    grows && convention.map_normaliser != MapNormaliser::Found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn every_metric_matches_its_definition_under_every_convention(
        query in any_query(),
        text in any_convention(),
    ) {
        let Ok(convention) = text.parse::<Convention>() else { return Ok(()) };
        prop_assume!(is_monotone(&convention) || ![Ties::Worst, Ties::Best].contains(&convention.ties)
            && ![Ties::Worst, Ties::Best].contains(&convention.binary_ties));
        let together = query.judge(&METRICS, &convention);
        for (name, value) in METRICS.into_iter().zip(together) {
            let metric: Metric = name.parse().unwrap();
            let slow = slowly(&metric, &convention, &query);
            match (value, slow) {
                (Some(value), Some(slow)) => {
                    prop_assert!((value - slow).abs() < 1e-9, "{name} under {convention}: {value}, {slow}");
                }
                _ => prop_assert_eq!(value, slow, "{} under {}", name, &convention),
            }
            prop_assert_eq!(query.judge(&[name], &convention)[0], value, "{} alone", name);
        }
    }

    #[test]
    fn printed_conventions_parse_to_the_same(text in any_convention()) {
        if let Ok(convention) = text.parse::<Convention>() {
            let printed = convention.to_string();
            let read: Convention = printed.parse().unwrap();
            prop_assert_eq!(&read, &convention);
            prop_assert_eq!(read.to_string(), printed);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC*", other in "[a-z0-9@=,:^()+-]{0,30}") {
        for text in [&text, &other, &format!("gain={other}"), &format!("letor4,{other}")] {
            let _ = text.parse::<Metric>();
            let _ = text.parse::<Convention>();
        }
    }
}

#[test]
fn worked_by_hand() {
    let query = TestQuery::of(&[0.0, 1.0, 2.0], &[3.0, 2.0, 1.0]);
    let has = |metric: &str, convention: &str, expected: f64| {
        let value = query.value(metric, convention).unwrap();
        assert!((value - expected).abs() < 5e-5, "{metric} under {convention}: {value}");
    };
    has("ndcg@3", "planetree", 0.5869);
    has("ndcg@3", "letor4", 0.7232);
    has("ndcg@3", "trec", 0.6199);
    has("ndcg@4", "letor4", 0.0);
    has("ndcg@4", "mslr", 0.0);
    has("ndcg", "yahoo", 0.5869);
    has("dcg", "planetree", 1.0 / 3_f64.log2() + 1.5);
    has("p@10", "planetree", 2.0 / 3.0);
    has("p@10", "letor4", 0.2);
    has("p@10", "mslr", 0.1);
    has("map", "letor4", (1.0 / 2.0 + 2.0 / 3.0) / 2.0);
    has("map", "mslr", 1.0 / 3.0);
    has("map@2", "planetree", 0.25);
    has("map@2", "ranklib", (1.0 / 2.0 + 2.0 / 3.0) / 2.0);
    has("map@2", "catboost", 0.25);
    has("map@2", "ydf", 0.5);
    has("mrr", "planetree", 0.5);
    has("recall@2", "planetree", 0.5);
    has("auc", "planetree", 0.0);
    has("tau", "planetree", -1.0);
    has("inversions", "planetree", 3.0);
    // 1/16 of the users stop at rank 2, and 3/16 of the remaining 15/16 stop at rank 3.
    has("err", "yahoo", 1.0 / 32.0 + 3.0 / 16.0 * 15.0 / 16.0 / 3.0);
    has("rmse", "planetree", (11.0_f64 / 3.0).sqrt());
}

#[test]
fn nothing_relevant_is_worth_what_the_convention_says() {
    let query = TestQuery::of(&[0.0, 0.0, 0.0], &[3.0, 2.0, 1.0]);
    for (convention, ndcg, map) in [
        ("planetree", Some(0.0), Some(0.0)),
        ("letor4", Some(0.0), Some(0.0)),
        ("yahoo", Some(1.0), Some(1.0)),
        ("mohan", Some(0.5), Some(0.5)),
        ("lightgbm", Some(1.0), Some(1.0)),
        ("xgboost,empty=0", Some(0.0), Some(0.0)),
        ("catboost", Some(1.0), Some(0.0)),
        ("empty=skip", None, None),
    ] {
        assert_eq!(query.value("ndcg@10", convention), ndcg, "{convention}");
        assert_eq!(query.value("map", convention), map, "{convention}");
        assert_eq!(query.value("auc", convention), None);
    }
    assert_eq!(query.value("err", "yahoo"), Some(0.0));
    assert_eq!(query.value("p@10", "empty=skip"), None);
    let nothing = TestQuery::of(&[], &[]);
    for metric in METRICS {
        assert!(nothing.value(metric, "planetree").is_none_or(|value| value == 0.0), "{metric}");
    }
    assert_eq!(nothing.value("rmse", "planetree"), None);
}

#[test]
fn without_a_depth_metrics_look_as_deep_as_the_preset_says() {
    let labels: Vec<f32> = (0_u16..60).map(|row| f32::from(row * 7 % 5)).collect();
    let scores: Vec<f64> = (0_u16..60).map(|row| f64::from(row * 31 % 61)).collect();
    let query = TestQuery::of(&labels, &scores);
    for (metric, preset, same, other) in [
        ("ndcg", "yahoo", "ndcg@10", "planetree"),
        ("ndcg", "mohan", "ndcg@10", "planetree"),
        ("err", "yahoo", "err@60", "planetree"),
        ("err", "mohan", "err@60", "planetree"),
        ("ndcg", "ranklib", "ndcg@10", "planetree"),
        ("err", "ranklib", "err@10", "planetree"),
        ("p", "ranklib", "p@10", "planetree"),
        ("map", "ranklib", "map@60", "planetree"),
        ("map@3", "ranklib", "map", "planetree"),
        ("ndcg", "xgboost", "ndcg@32", "lightgbm"),
        ("map", "xgboost", "map@32", "lightgbm"),
        ("map", "lightgbm", "map", "planetree"),
    ] {
        let value = query.value(metric, preset).unwrap();
        assert_eq!(value, query.value(same, other).unwrap(), "{metric} under {preset}");
        assert!(value > 0.0 && value < 1.0);
    }
    assert_ne!(query.value("ndcg", "planetree"), query.value("ndcg@10", "planetree"));
    assert_ne!(query.value("map@32", "lightgbm"), query.value("map@32", "planetree"));
}

#[test]
fn the_thesis_bounds_the_partial_area() {
    let labels: Vec<f32> = (0..200).map(|place| if place < 100 { 1.0 } else { 0.0 }).collect();
    let falling: Vec<f64> = (0..200).map(|place| -f64::from(place)).collect();
    let close = |query: &TestQuery, metric: &str, expected: f64| {
        let value = query.value(metric, "mohan").unwrap();
        assert!((value - expected).abs() < 1e-12, "{metric}: {value}");
    };
    let perfect = TestQuery::of(&labels, &falling);
    close(&perfect, "pauc@0-5", 0.05);
    close(&perfect, "auc", 1.0);
    let guessing = TestQuery::of(&labels, &[0.0; 200]);
    close(&guessing, "pauc@0-5", 0.00125);
    close(&guessing, "auc", 0.5);
}

#[test]
fn missing_labels_count_as_zero_and_scores_that_are_no_number_come_last() {
    let missing = TestQuery::of(&[f32::NAN, 2.0, f32::NAN], &[3.0, 2.0, 1.0]);
    let zero = TestQuery::of(&[0.0, 2.0, 0.0], &[3.0, 2.0, 1.0]);
    let last = TestQuery::of(&[2.0, 0.0, 1.0], &[f64::NAN, 2.0, 1.0]);
    let lowest = TestQuery::of(&[2.0, 0.0, 1.0], &[f64::NEG_INFINITY, 2.0, 1.0]);
    for metric in METRICS {
        for preset in Convention::presets() {
            assert_eq!(missing.value(metric, preset.name), zero.value(metric, preset.name), "{metric}");
            assert_eq!(last.value(metric, preset.name), lowest.value(metric, preset.name), "{metric}");
        }
    }
}

#[test]
fn what_cannot_be_judged_says_why() {
    let fault = |convention: &str, labels: &[f32], scores: &[f64]| {
        let convention: Convention = convention.parse().unwrap();
        let rows = QueryRows { labels, scores, documents: None, judged: None };
        Judge::new(&[Metric::Ndcg(None)], &convention).query(&rows).unwrap_err()
    };
    let unfit = fault("gain=0:1:3", &[0.0, 3.0], &[1.0, 2.0]);
    assert_eq!((unfit.row, unfit.problem.as_str()), (Some(1), "gain=0:1:3 defines no gain for label 3"));
    let unfit = fault("trec", &[0.0, 1.0, 0.0], &[1.0, 2.0, 2.0]);
    assert_eq!(unfit.row, Some(1));
    assert!(unfit.problem.starts_with("2 documents have the score 2, and there are no document ids"));
    assert_eq!(unfit.at("runs/a.txt").to_string().split(": ").next(), Some("runs/a.txt"));
    let unfit = fault("planetree", &[0.0], &[]);
    assert_eq!(unfit.problem, "the columns of the query differ in length: 1 labels, 0 scores, 1 documents");
}

#[test]
fn better_means_lower_for_errors() {
    assert!(Metric::Rmse.is_better(0.1, 0.2) && !Metric::Rmse.is_better(0.2, 0.2));
    assert!(Metric::Inversions.is_better(1.0, 2.0));
    assert!(Metric::Ndcg(Some(10)).is_better(0.2, 0.1) && !Metric::Err(None).is_better(0.1, 0.1));
}

#[test]
fn long_queries_go_the_same_way_as_short_ones() {
    let labels: Vec<f32> = (0_u16..500).map(|row| f32::from(row * 7 % 5)).collect();
    let scores: Vec<f64> = (0_u16..500).map(|row| f64::from(row * 31 % 101)).collect();
    let query = TestQuery::of(&labels, &scores);
    for preset in Convention::presets() {
        let convention = preset.convention().unwrap();
        for name in
            ["ndcg@10", "ndcg@40", "ndcg", "err", "map", "map@20", "mrr", "p@30", "auc", "tau", "inversions"]
        {
            let metric: Metric = name.parse().unwrap();
            if ![convention.ties, convention.binary_ties].iter().any(|ties| {
                // A hundred groups of five equal scores have too many orders to enumerate.
                [Ties::Average, Ties::Worst, Ties::Best].contains(ties)
            }) {
                let value = query.judge(&[name], &convention)[0].unwrap();
                let slow = slowly(&metric, &convention, &query).unwrap();
                let tolerance = if name == "auc" { 1e-3 } else { 1e-9 };
                assert!((value - slow).abs() < tolerance, "{name} under {convention}: {value}, {slow}");
            }
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn judging_a_row_costs_well_under_100_nanoseconds() {
    let mut draw = planetree_base::random::Stream::new(&[4]);
    let queries: Vec<TestQuery> = (0..20_000)
        .map(|_| {
            let labels: Vec<f32> = (0..100).map(|_| (draw.uniform().powi(3) * 5.0).floor() as f32).collect();
            let scores: Vec<f64> =
                labels.iter().map(|label| f64::from(*label) + 2.0 * draw.normal()).collect();
            TestQuery::of(&labels, &scores)
        })
        .collect();
    let metrics = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "err", "map"].map(|name| name.parse().unwrap());
    for preset in ["planetree", "letor4", "lightgbm", "catboost", "ydf", "sklearn"] {
        let mut judge = Judge::new(&metrics, &preset.parse().unwrap());
        let mut means = metrics.map(Mean::new);
        let begun = std::time::Instant::now();
        for query in &queries {
            let rows =
                QueryRows { labels: &query.labels, scores: &query.scores, documents: None, judged: None };
            judge.query(&rows).unwrap();
            judge.add_to(&mut means, &rows, 1.0);
        }
        let a_row = begun.elapsed().as_nanos() as f64 / 2e6;
        println!("{preset}: {a_row:.1} ns a row, NDCG@10 {:.6}", means[3].value());
        assert!(a_row < 100.0, "{preset}: {a_row} ns a row");
    }
}

#[test]
fn an_empty_ranking_has_the_value_zero_without_a_sign() {
    let query = TestQuery { judged: Some(vec![1.0, 0.0]), ..TestQuery::of(&[], &[]) };
    let names = ["ndcg", "ndcg@3", "dcg", "err", "map", "mrr", "p", "p@2", "recall@2", "rprec", "success"];
    for convention in ["trec", "trec,ties=average,binary_ties=average", "trec,ties=worst,binary_ties=worst"] {
        let values = query.judge(&names, &convention.parse().unwrap());
        for (name, value) in names.iter().zip(values) {
            assert_eq!(value.map(f64::to_bits), Some(0), "{name} under {convention}");
        }
    }
}
