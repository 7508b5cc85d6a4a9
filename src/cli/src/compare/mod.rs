//! Implements `planetree compare`.

mod json;
mod table;
mod text;

use super::baselines::BaselineOptions;
use super::options::{JsonOptions, StoreOptions, ThreadOptions, parse_repetitions, split_name};
use clap::{Args, ValueEnum};
use planetree_base::error::{Error, Result};
use planetree_data::table::{TableKind, TableWriter};
use planetree_judge::compare::{
    AlignedSystems, Alternative, ComparedFile, ComparisonOptions, Moments, PairComparison, ReadSystems,
    ReadingRules, SignificanceTest, compare, read_systems, write_differences,
};
use planetree_judge::evaluate::Judgments;
use std::num::NonZeroU64;

/// Test whether differences between rankings are significant
///
/// Compares systems query by query. Inputs are per-query metrics written by `evaluate --output`, or predictions, which
/// are evaluated first. Prints the means, their difference with a confidence interval, three significance tests, the
/// number of queries that improved and worsened, and the queries that changed most. A difference is the value of the
/// later file minus the value of the earlier one. With more than two files, all pairs are compared and corrected for
/// multiple testing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree compare old.parquet new.parquet
  planetree compare old.parquet new.parquet --metric err --json | jq '.pairs[0].randomisation.p'
  planetree compare bm25=a.parquet mart=b.parquet lambdamart=c.parquet --metric ndcg@10
  planetree compare --run bm25.run --run ltr.run --qrels qrels.txt --metric map
  planetree compare bm25=a.parquet mart=b.parquet lambdamart=c.parquet --format latex
  planetree compare lambdamart.parquet --data test --feature bm25=f110
  planetree compare s3://runs/monday/metrics.parquet s3://runs/tuesday/metrics.parquet --output moved.parquet")]
pub(crate) struct CompareArguments {
    /// Per-query metrics, or predictions in Parquet, CSV or JSON: two or more files or URLs, or one table with several
    /// systems
    #[arg(value_name = "[NAME=]FILE", required_unless_present_any = ["run", "feature", "random"])]
    files: Vec<String>,

    /// Run file of trec_eval, judged by --qrels; may be repeated
    #[arg(long, value_name = "[NAME=]FILE", requires = "qrels")]
    run: Vec<String>,

    /// Judgments in the format of trec_eval, used instead of the labels of rankings; metrics tables keep their values
    #[arg(long, value_name = "FILE")]
    qrels: Option<String>,

    /// Dataset that --feature and --random rank
    #[arg(long, value_name = "DATASET")]
    data: Option<String>,

    #[command(flatten)]
    baselines: BaselineOptions,

    /// Metric to compare
    #[arg(long, value_name = "METRIC", default_value = "ndcg@10")]
    metric: String,

    /// Metric convention for predictions [default: the convention of the metrics tables, else trec with --qrels, else
    /// planetree]
    #[arg(long, value_name = "NAME")]
    convention: Option<String>,

    /// Labels that replace those of predictions, such as 0,1,2=0;3,4=1 [default: the map of the metrics tables, else none]
    #[arg(long, value_name = "OLD,...=NEW;...")]
    label_map: Option<String>,

    /// Test that decides whether a difference is significant
    #[arg(long, value_enum, default_value_t = TestArgument::Randomisation)]
    test: TestArgument,

    /// Alternative hypothesis of the tests; a difference is the value of the later file minus that of the earlier one
    #[arg(long, value_enum, default_value_t = AlternativeArgument::TwoSided)]
    alternative: AlternativeArgument,

    /// Significance level: the accepted probability of reporting a difference that does not exist
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = parse_share)]
    alpha: f64,

    /// Confidence level of the interval around the mean difference
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = parse_share)]
    level: f64,

    /// Number of random sign assignments in the randomisation test; if at most 20 queries differ, all assignments are
    /// enumerated
    #[arg(long, value_name = "N", default_value = "100000", value_parser = parse_repetitions)]
    permutations: NonZeroU64,

    /// Number of bootstrap resamples for the confidence interval
    #[arg(long, value_name = "N", default_value = "10000", value_parser = parse_repetitions)]
    bootstrap: NonZeroU64,

    /// Random seed of the bootstrap, the randomisation test and --random
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Number of queries to show in each list of largest changes (improved, worsened)
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Fail with exit code 3 if a later file is significantly worse than the first one, by the deciding test
    #[arg(long)]
    fail_if_worse: bool,

    /// Write per-query differences to a file or a URL: .parquet (or no extension), .csv, .tsv, .json, .ndjson; text
    /// formats also with .gz or .zst
    #[arg(long, short, value_name = "FILE")]
    output: Option<String>,

    /// Format of the result: text, or a table of all systems for papers
    #[arg(long, value_enum, default_value_t = CompareFormat::Text, conflicts_with = "json")]
    format: CompareFormat,

    #[command(flatten)]
    json: JsonOptions,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// Format of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompareFormat {
    /// All numbers as text
    Text,
    /// A Markdown table of means with significance marks
    #[value(alias = "md")]
    Markdown,
    /// A LaTeX table of means with significance marks
    #[value(alias = "tex")]
    Latex,
}

/// A [`SignificanceTest`] as a value on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum TestArgument {
    /// Fisher's randomisation test
    #[value(alias = "randomization", alias = "permutation", alias = "fisher")]
    Randomisation,
    /// Student's paired t-test
    #[value(alias = "t-test", alias = "ttest")]
    T,
    /// Wilcoxon's signed-rank test
    Wilcoxon,
}

impl From<TestArgument> for SignificanceTest {
    fn from(argument: TestArgument) -> Self {
        match argument {
            TestArgument::Randomisation => SignificanceTest::Randomisation,
            TestArgument::T => SignificanceTest::T,
            TestArgument::Wilcoxon => SignificanceTest::Wilcoxon,
        }
    }
}

/// An [`Alternative`] as a value on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AlternativeArgument {
    /// The systems differ, in either direction
    TwoSided,
    /// The later file has greater values
    Greater,
    /// The later file has smaller values
    Less,
}

impl From<AlternativeArgument> for Alternative {
    fn from(argument: AlternativeArgument) -> Self {
        match argument {
            AlternativeArgument::TwoSided => Alternative::TwoSided,
            AlternativeArgument::Greater => Alternative::Greater,
            AlternativeArgument::Less => Alternative::Less,
        }
    }
}

fn parse_share(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("expected a number between 0 and 1, such as 0.05".to_owned()),
    }
}

/// The result of a comparison.
struct Comparison {
    read: ReadSystems,
    aligned: AlignedSystems,
    options: ComparisonOptions,
    means: Vec<f64>,
    pairs: Vec<PairComparison>,
    notes: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &CompareArguments, quiet: bool) -> Result<()> {
    let output = arguments.store.locate_optional(arguments.output.as_ref())?;
    if let Some(output) = &output {
        TableWriter::check(output, TableKind::Differences)?;
    }
    let comparison = comparison(arguments)?;
    if let Some(output) = &output {
        let Comparison { read, aligned, pairs, .. } = &comparison;
        let metadata = [read.metric.as_str(), &read.convention.to_string()];
        write_differences(output, &read.systems, aligned, pairs, metadata)?;
    }
    if !quiet {
        for note in &comparison.notes {
            super::message(format_args!("note: {note}"));
        }
    }
    let text = || match arguments.format {
        CompareFormat::Text => text::text(&comparison),
        CompareFormat::Markdown => table::markdown(&comparison),
        CompareFormat::Latex => table::latex(&comparison),
    };
    arguments.json.print(text, || json::object(&comparison))?;
    if arguments.fail_if_worse { comparison.check_not_worse() } else { Ok(()) }
}

impl Comparison {
    /// Fails if a later system is significantly worse than the first one.
    fn check_not_worse(&self) -> Result<()> {
        let is_worse = |pair: &&PairComparison| {
            let change = pair.mean_b - pair.mean_a;
            pair.a == 0 && pair.differs && (change < 0.0) == self.options.higher_is_better && change != 0.0
        };
        let name = |index: usize| &self.read.systems[index].name;
        let worse: Vec<String> = self
            .pairs
            .iter()
            .filter(is_worse)
            .map(|pair| {
                format!(
                    "{} is worse than {} by {} ({:.6} against {:.6}, p {:.4})",
                    name(pair.b),
                    name(pair.a),
                    self.read.metric,
                    pair.mean_b,
                    pair.mean_a,
                    pair.corrected
                )
            })
            .collect();
        if worse.is_empty() {
            return Ok(());
        }
        Err(Error::QualityGate { problem: format!("quality gate failed: {}", worse.join("; ")) })
    }
}

impl CompareArguments {
    /// Returns the baselines. They come first, so that differences are those of the files from the baselines.
    fn baselines(&self) -> Result<Vec<ComparedFile>> {
        let named = self.baselines.named(self.seed)?;
        let Some(data) = &self.data else { return Ok(Vec::new()) };
        if named.is_empty() {
            return Err(Error::usage(
                format_args!("--data {data}: there is nothing to rank its rows by"),
                "pass --feature NAME or --random",
            ));
        }
        let data = self.store.locate(data)?;
        let file = |(name, baseline)| ComparedFile {
            name: Some(name),
            location: data.clone(),
            baseline: Some(baseline),
            is_run: false,
        };
        Ok(named.into_iter().map(file).collect())
    }
}

fn comparison(arguments: &CompareArguments) -> Result<Comparison> {
    let qrels = arguments.store.locate_optional(arguments.qrels.as_ref())?;
    let by_qrels = qrels.is_some().then_some("trec");
    let rules = ReadingRules {
        convention: arguments.convention.as_deref().or(by_qrels).map(str::parse).transpose()?,
        label_map: arguments.label_map.as_deref().map(str::parse).transpose()?,
        judgments: qrels.map(Judgments::Qrels),
    };
    let file = |text: &String, is_run: bool| {
        let (name, path) = split_name(text);
        let location = arguments.store.locate(path)?;
        Ok(ComparedFile { name: name.map(str::to_owned), is_run, ..ComparedFile::new(location) })
    };
    let mut sources = arguments.baselines()?;
    for text in &arguments.files {
        sources.push(file(text, false)?);
    }
    for text in &arguments.run {
        sources.push(file(text, true)?);
    }
    if let Some((first, _)) = arguments.metric.split_once(',') {
        return Err(Error::usage(
            format_args!("--metric {}: compare tests one metric", arguments.metric),
            format_args!("run it once for each, such as --metric {first}"),
        ));
    }
    let read = read_systems(&sources, &arguments.metric, &rules, arguments.threads.requested())?;
    if read.systems.len() < 2 {
        return Err(Error::usage("only one system to compare", "pass a second file"));
    }
    let aligned = AlignedSystems::of(&read.systems)?;
    let options = ComparisonOptions {
        higher_is_better: read.higher_is_better,
        test: arguments.test.into(),
        alternative: arguments.alternative.into(),
        alpha: arguments.alpha,
        permutations: arguments.permutations.get(),
        resamples: arguments.bootstrap.get(),
        level: arguments.level,
        seed: arguments.seed,
        top: arguments.top,
    };
    let pairs = arguments.threads.pool()?.install(|| compare(&aligned, &options))?;
    let means = aligned.values.iter().map(|values| Moments::of(values).mean).collect();
    let notes = notes(&aligned, &pairs);
    Ok(Comparison { read, aligned, options, means, pairs, notes })
}

/// Returns notes on the validity of the comparison.
fn notes(aligned: &AlignedSystems, pairs: &[PairComparison]) -> Vec<String> {
    let mut notes = aligned.notes.clone();
    let same = pairs.iter().filter(|pair| pair.wins + pair.losses == 0).count();
    if same > 0 && pairs.len() == 1 {
        notes.push("both systems have the same value for every query: nothing to test".to_owned());
    } else if same > 0 {
        notes.push(format!("{same} pairs have the same value for every query"));
    }
    let queries = aligned.queries.len();
    if queries == 1 {
        notes.push("there is only one query: no test can show a difference".to_owned());
    } else if queries < FEW_QUERIES {
        notes.push(format!("there are only {queries} queries: small differences cannot be significant"));
    }
    notes
}

/// Number of queries below which the user is warned. A retrieval experiment should have at least 25 queries (Buckley
/// and Voorhees 2000, who prefer 50).
const FEW_QUERIES: usize = 25;

/// Returns the name of a test on the command line.
fn test_name(test: SignificanceTest) -> &'static str {
    match test {
        SignificanceTest::Randomisation => "randomisation",
        SignificanceTest::T => "t",
        SignificanceTest::Wilcoxon => "wilcoxon",
    }
}
