//! Judges whether the findings of a paper hold in a run.

use super::systems::{RunResults, SystemUnit, by_query, higher_is_better, mean};
use crate::number::probability;
use planetree_base::error::Result;
use planetree_judge::compare::{
    AlignedSystems, Alternative, ComparisonOptions, SignificanceTest, compare, holm,
};
use planetree_run::pipeline::PaperFinding;

/// Significance level of findings.
const ALPHA: f64 = 0.05;

/// Whether a finding holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// In the stated direction, and significant.
    Beyond,
    /// In the stated direction, but it may be chance.
    Within,
    /// Systems that should not differ do not differ significantly.
    Same,
    /// In the stated direction; there are no values per query to test.
    Untested,
    /// As stated for the systems of the run, which does not have all systems of the finding.
    Partly,
    /// Not in the stated direction, but that may be chance.
    Not,
    /// Not in the stated direction; there are no values per query to test.
    NotUntested,
    /// Significantly in the opposite direction.
    Opposite,
    /// The run has the systems, but not the values that decide.
    Undecided,
    /// The run does not have the systems.
    Missing,
}

impl Verdict {
    /// Returns what the report says.
    pub(super) fn words(self) -> &'static str {
        match self {
            Verdict::Beyond => "✓ holds beyond chance",
            Verdict::Within => "(✓) holds, within chance",
            Verdict::Same => "✓ holds: no significant difference",
            Verdict::Untested => "✓ holds, not tested",
            Verdict::Partly => "(✓) holds for the systems of this run",
            Verdict::Not => "(✗) does not hold, within chance",
            Verdict::NotUntested => "✗ does not hold, not tested",
            Verdict::Opposite => "✗ does not hold, beyond chance",
            Verdict::Undecided => "– cannot be judged",
            Verdict::Missing => "– not in this run",
        }
    }

    /// Returns the verdict on a finding of which some systems are not in the run. What contradicts a finding does so
    /// without them, too.
    fn without_some(self) -> Verdict {
        match self {
            Verdict::Beyond | Verdict::Within | Verdict::Same | Verdict::Untested => Verdict::Partly,
            other => other,
        }
    }
}

impl RunResults {
    fn units(&self, patterns: &[String], average: bool) -> Vec<SystemUnit<'_>> {
        let matched = patterns.iter().map(|pattern| self.matching(pattern)).filter(|unit| !unit.is_empty());
        if average {
            return matched.collect();
        }
        matched.flatten().map(|system| vec![system]).collect()
    }

    /// Says how many steps of a trend with more than one step have the stated direction.
    fn steps(&self, finding: &PaperFinding, metric: &str) -> String {
        let units = self.units(&finding.rising, finding.average);
        let values: Vec<f64> = units.iter().filter_map(|unit| mean(unit, metric)).collect();
        if values.len() < 3 {
            return String::new();
        }
        let rises = |pair: &&[f64]| (pair[1] > pair[0]) == higher_is_better(metric) && pair[1] != pair[0];
        let word = if higher_is_better(metric) { "rise" } else { "fall" };
        format!("; {} of {} steps {word}", values.windows(2).filter(rises).count(), values.len() - 1)
    }

    /// Returns the patterns of a finding that match no system with the metric.
    fn absent<'f>(&self, finding: &'f PaperFinding, metric: &str) -> Vec<&'f str> {
        let all = [&finding.better, &finding.than, &finding.rising, &finding.alike];
        let patterns = all.into_iter().flatten().map(String::as_str);
        patterns.filter(|pattern| mean(&self.matching(pattern), metric).is_none()).collect()
    }

    /// Judges a finding by one metric. Returns the verdict and what it is based on.
    pub(super) fn judge(&self, finding: &PaperFinding, metric: &str) -> Result<(Verdict, String)> {
        let absent = self.absent(finding, metric);
        // A trend is judged by its ends. Those that remain without them are of another trend.
        let ends = [finding.rising.first(), finding.rising.last()];
        if ends.into_iter().flatten().any(|end| absent.contains(&end.as_str())) {
            return Ok((Verdict::Missing, absent.join(", ")));
        }
        let (verdict, evidence) = self.judge_present(finding, metric)?;
        let absent = absent.join(", ");
        Ok(match (absent.is_empty(), evidence.is_empty()) {
            (true, _) => (verdict, evidence),
            (false, true) => (verdict.without_some(), absent),
            (false, false) => (verdict.without_some(), format!("{evidence}; not in this run: {absent}")),
        })
    }

    /// Judges a finding by the systems that the run has.
    fn judge_present(&self, finding: &PaperFinding, metric: &str) -> Result<(Verdict, String)> {
        let units = |patterns: &[String]| self.units(patterns, finding.average);
        let pairs: Vec<[SystemUnit<'_>; 2]> = if !finding.rising.is_empty() {
            let all = units(&finding.rising);
            all.first()
                .zip(all.last())
                .map(|(first, last)| [last.clone(), first.clone()])
                .into_iter()
                .collect()
        } else if !finding.alike.is_empty() {
            let all = units(&finding.alike);
            if let Some(within) = finding.within {
                return Ok(close(&all, metric, within));
            }
            (0..all.len())
                .flat_map(|b| (0..b).map(move |a| (a, b)))
                .map(|(a, b)| [all[a].clone(), all[b].clone()])
                .collect()
        } else {
            let than = units(&finding.than);
            units(&finding.better)
                .into_iter()
                .flat_map(|one| than.iter().map(move |other| [one.clone(), other.clone()]))
                .collect()
        };
        let better = if higher_is_better(metric) { 1.0 } else { -1.0 };
        let mut differences = Vec::new();
        let mut tests = Vec::new();
        for [one, other] in pairs.iter().filter(|[one, other]| one[0].name != other[0].name) {
            let (Some(first), Some(second)) = (mean(one, metric), mean(other, metric)) else { continue };
            differences.push((better * (first - second), first - second));
            // The mean of folds, or of documents for RMSE, may differ in sign from the mean of queries, which is tested.
            let test = tested(one, other, metric)?;
            tests.push(test.map(|(p, mean)| if mean * (first - second) < 0.0 { 1.0 } else { p }));
        }
        if differences.is_empty() {
            return Ok((Verdict::Missing, String::new()));
        }
        let known: Option<Vec<f64>> = tests.into_iter().collect();
        let p = known.map(|p| holm(&p));
        let least = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.first().copied().unwrap_or(1.0)
        };
        if !finding.alike.is_empty() {
            let Some(p) = p else { return Ok((Verdict::Undecided, "no values per query".to_owned())) };
            let differ = p.iter().filter(|p| **p <= ALPHA).count();
            let said =
                format!("{differ} of {} pairs differ, least p {}", p.len(), probability(least(p.clone())));
            return Ok((if differ == 0 { Verdict::Same } else { Verdict::Opposite }, said));
        }
        let right = differences.iter().filter(|(gain, _)| *gain > 0.0).count();
        let all_right = right == differences.len();
        let worst =
            differences.iter().min_by(|one, other| one.0.total_cmp(&other.0)).map_or(0.0, |one| one.1);
        let mut said = format!("{right} of {} as stated; least difference {worst:+.4}", differences.len());
        let Some(p) = p else {
            said.push_str(&self.steps(finding, metric));
            return Ok((if all_right { Verdict::Untested } else { Verdict::NotUntested }, said));
        };
        let of = |sign: bool| {
            let pairs = differences.iter().zip(&p).filter(move |((gain, _), _)| (*gain > 0.0) == sign);
            pairs.map(|(_, p)| *p).collect::<Vec<f64>>()
        };
        let verdict = match all_right {
            true if p.iter().all(|p| *p <= ALPHA) => Verdict::Beyond,
            true => Verdict::Within,
            false if of(false).iter().any(|p| *p <= ALPHA) => Verdict::Opposite,
            false => Verdict::Not,
        };
        let greatest = p.iter().copied().fold(0.0, f64::max);
        said.push_str(&match all_right {
            true => format!("; greatest p {}", probability(greatest)),
            false => format!("; least p of the others {}", probability(least(of(false)))),
        });
        said.push_str(&self.steps(finding, metric));
        Ok((verdict, said))
    }
}

/// Whether all systems are within a relative distance of the best one.
fn close(units: &[SystemUnit<'_>], metric: &str, within: f64) -> (Verdict, String) {
    let values: Vec<f64> = units.iter().filter_map(|unit| mean(unit, metric)).collect();
    let (low, high) =
        (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(0.0, f64::max));
    let best = if higher_is_better(metric) { high } else { low };
    if values.len() < 2 {
        return (Verdict::Missing, String::new());
    }
    if best <= 0.0 {
        return (Verdict::Undecided, format!("no relative distance: the best value is {best:.4}"));
    }
    let distance = (high - low) / best;
    let verdict = if distance <= within { Verdict::Untested } else { Verdict::NotUntested };
    (verdict, format!("relative distance {distance:.4}, limit {within}"))
}

/// Returns the two-sided p-value of the difference of two systems, and the mean difference over queries; `None` without
/// values per query.
fn tested(one: &SystemUnit<'_>, other: &SystemUnit<'_>, metric: &str) -> Result<Option<(f64, f64)>> {
    let (Some(one), Some(other)) = (by_query(one, metric), by_query(other, metric)) else { return Ok(None) };
    let Ok(aligned) = AlignedSystems::of(&[one, other]) else { return Ok(None) };
    let options = ComparisonOptions {
        higher_is_better: higher_is_better(metric),
        test: SignificanceTest::Randomisation,
        alternative: Alternative::TwoSided,
        alpha: ALPHA,
        permutations: 20_000,
        resamples: 1,
        level: 0.95,
        seed: 1,
        top: 0,
    };
    Ok(compare(&aligned, &options)?.first().map(|pair| (pair.corrected, -pair.difference.mean)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::paper::systems::{SECONDS, SystemResult};
    use planetree_judge::compare::QueryValue;

    /// Systems whose values of 40 queries are those of a base plus a shift, with a spread that differs by system.
    fn systems(systems: &[(&str, f64, f64)]) -> Vec<SystemResult> {
        let system = |(name, shift, spread): &(&str, f64, f64)| {
            let value =
                |query: usize| 0.5 + shift + spread * if query.is_multiple_of(2) { 1.0 } else { -1.0 };
            let queries: Vec<QueryValue> = (0..40)
                .map(|query| QueryValue {
                    query: format!("{query:02}"),
                    value: Some(value(query)),
                    documents: None,
                })
                .collect();
            let means = [("err".to_owned(), 0.5 + shift), (SECONDS.to_owned(), 10.0 - shift)].into();
            let queries = [("err".to_owned(), queries)].into();
            SystemResult { means, queries, ..SystemResult::named(name) }
        };
        systems.iter().map(system).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn verdict(results: &RunResults, finding: PaperFinding, metric: &str) -> Verdict {
        results.judge(&finding, metric).unwrap().0
    }

    #[test]
    fn a_finding_holds_beyond_or_within_chance_or_not() {
        let four = || systems(&[("a-1", 0.0, 0.0), ("a-2", 0.01, 0.0), ("b", 0.1, 0.01), ("c", 0.101, 0.3)]);
        let results = RunResults::of(four());
        let better = |one: &str, other: &str| PaperFinding {
            better: names(&[one]),
            than: names(&[other]),
            ..PaperFinding::default()
        };
        assert_eq!(verdict(&results, better("b", "a-*"), "err"), Verdict::Beyond);
        assert_eq!(verdict(&results, better("c", "b"), "err"), Verdict::Within);
        assert_eq!(verdict(&results, better("b", "c"), "err"), Verdict::Not);
        assert_eq!(verdict(&results, better("a-*", "b"), "err"), Verdict::Opposite);
        assert_eq!(verdict(&results, better("a-*", "x"), "err"), Verdict::Missing);
        assert_eq!(verdict(&results, better("b", "a-1"), SECONDS), Verdict::Untested, "less is better");
        let average = PaperFinding { average: true, ..better("b", "a-*") };
        assert!(results.judge(&average, "err").unwrap().1.starts_with("1 of 1 as stated"));
        let rising = |systems| PaperFinding { rising: names(systems), ..PaperFinding::default() };
        assert_eq!(verdict(&results, rising(&["a-1", "a-2", "b"]), "err"), Verdict::Beyond);
        let evidence = results.judge(&rising(&["a-1", "c", "b"]), "err").unwrap().1;
        assert!(evidence.ends_with("; 1 of 2 steps rise"), "{evidence}");
        assert_eq!(verdict(&results, rising(&["b", "a-1"]), "err"), Verdict::Opposite);
        let alike =
            |systems, within| PaperFinding { alike: names(systems), within, ..PaperFinding::default() };
        assert_eq!(verdict(&results, alike(&["b", "c"], None), "err"), Verdict::Same);
        assert_eq!(verdict(&results, alike(&["a-*"], None), "err"), Verdict::Opposite);
        assert_eq!(verdict(&results, alike(&["a-*"], Some(0.02)), "err"), Verdict::Untested);
        assert_eq!(verdict(&results, alike(&["a-1", "b"], Some(0.02)), "err"), Verdict::NotUntested);
        // 0.5 is 1/6 below the best of ERR, 9.9 seconds are best and 10 are 1/99 above them.
        let distance = |metric| results.judge(&alike(&["a-1", "b"], Some(0.02)), metric).unwrap().1;
        assert!(distance("err").starts_with("relative distance 0.1667"), "{}", distance("err"));
        assert!(distance(SECONDS).starts_with("relative distance 0.0101"), "{}", distance(SECONDS));
        let zero = RunResults::of(systems(&[("a", -0.5, 0.0), ("b", -0.5, 0.0)]));
        assert_eq!(verdict(&zero, alike(&["a", "b"], Some(0.02)), "err"), Verdict::Undecided);
        assert_eq!(verdict(&results, alike(&["a-1", "b"], None), SECONDS), Verdict::Undecided);
        // A test over queries is no evidence for means of the opposite sign.
        let mut others = four();
        others[2].means.insert("err".to_owned(), 0.4);
        let others = RunResults::of(others);
        assert_eq!(verdict(&others, better("b", "a-1"), "err"), Verdict::Not);
    }

    #[test]
    fn a_finding_does_not_hold_beyond_the_systems_of_the_run() {
        let results = RunResults::of(systems(&[
            ("a-1", 0.0, 0.0),
            ("a-2", 0.01, 0.0),
            ("b", 0.1, 0.01),
            ("c", 0.101, 0.3),
        ]));
        let judged = |finding: PaperFinding| results.judge(&finding, "err").unwrap();
        let better = |one: &[&str], than: &[&str]| {
            judged(PaperFinding { better: names(one), than: names(than), ..PaperFinding::default() })
        };
        for found in
            [better(&["b"], &["a-1", "x"]), better(&["b", "x"], &["a-*"]), better(&["c"], &["b", "x"])]
        {
            assert_eq!(found.0, Verdict::Partly, "{found:?}");
            assert!(found.1.ends_with("; not in this run: x"), "{found:?}");
        }
        let (verdict, evidence) = better(&["a-1"], &["b", "x", "y-*"]);
        assert_eq!(verdict, Verdict::Opposite);
        assert!(evidence.ends_with("; not in this run: x, y-*"), "{evidence}");
        assert_eq!(better(&["x"], &["a-1"]), (Verdict::Missing, "x".to_owned()));
        let rising =
            |systems: &[&str]| judged(PaperFinding { rising: names(systems), ..PaperFinding::default() });
        assert_eq!(rising(&["a-1", "x", "b"]).0, Verdict::Partly);
        assert_eq!(rising(&["a-1", "b", "x"]), (Verdict::Missing, "x".to_owned()));
        assert_eq!(rising(&["x", "a-1", "b"]), (Verdict::Missing, "x".to_owned()));
        let alike = |systems: &[&str], within| {
            judged(PaperFinding { alike: names(systems), within, ..PaperFinding::default() })
        };
        assert_eq!(alike(&["b", "c", "x"], None).0, Verdict::Partly);
        assert_eq!(alike(&["a-*", "x"], Some(0.02)).0, Verdict::Partly);
        assert_eq!(alike(&["b", "x"], None), (Verdict::Missing, "x".to_owned()));
    }
}
