//! Implements `planetree compare`.

mod json;
mod rankings;
mod table;
mod text;

use super::baselines::BaselineOptions;
use super::options::{JsonOptions, StoreOptions, ThreadOptions, parse_repetitions, parse_whole, split_name};
use clap::{Args, ValueEnum};
use planetree_base::error::{Error, Result};
use planetree_base::size::counted;
use planetree_data::table::{TableKind, TableWriter};
use planetree_judge::compare::{
    AlignedSystems, Alternative, ComparedFile, ComparisonOptions, Moments, PairComparison, ReadSystems,
    ReadingRules, SignificanceTest, compare, read_systems, write_differences,
};
use planetree_judge::evaluate::Judgments;
use rankings::RankingOptions;
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
  planetree compare bm25=a.parquet mart=b.parquet --metric ndcg@10,err --format latex
  planetree compare lambdamart.parquet --data test --feature bm25=f110
  planetree compare s3://runs/monday/m.parquet s3://runs/tuesday/m.parquet --output moved.parquet")]
pub(crate) struct CompareArguments {
    #[command(flatten)]
    rankings: RankingOptions,

    /// Judgments in the format of trec_eval, used instead of the labels of rankings; metrics tables keep their values
    #[arg(long, value_name = "FILE")]
    qrels: Option<String>,

    /// Dataset that --feature and --random rank: a directory or a URL. Convert tables first: planetree convert
    #[arg(long, value_name = "DATASET")]
    data: Option<String>,

    #[command(flatten)]
    baselines: BaselineOptions,

    /// Metric to compare; with --format markdown or latex, one or more, separated by commas
    #[arg(long, alias = "metrics", value_name = "METRIC", default_value = "ndcg@10")]
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
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = parse_alpha)]
    alpha: f64,

    /// Confidence level of the interval around the mean difference
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = parse_level)]
    level: f64,

    /// Number of random sign assignments in the randomisation test; if at most 20 queries differ, all assignments are
    /// enumerated
    #[arg(long, value_name = "N", default_value = "100000", value_parser = parse_repetitions)]
    permutations: NonZeroU64,

    /// Number of bootstrap resamples for the confidence interval
    #[arg(long, value_name = "N", default_value = "10000", value_parser = parse_repetitions)]
    bootstrap: NonZeroU64,

    /// Random seed of the bootstrap, the randomisation test and --random
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = parse_whole::<u64>)]
    seed: u64,

    /// Number of queries to show in each list of largest changes (improved, worsened)
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = parse_whole::<usize>)]
    top: usize,

    /// Fail with exit code 3 if a later file is significantly worse than the first one, by the deciding test; not with
    /// the --alternative that it is better, such as greater for ndcg@10
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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

fn parse_alpha(text: &str) -> std::result::Result<f64, String> {
    parse_share(text, "0.05")
}

fn parse_level(text: &str) -> std::result::Result<f64, String> {
    parse_share(text, "0.95")
}

fn parse_share(text: &str, example: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(format!("expected a number between 0 and 1, such as {example}")),
    }
}

/// The result of a comparison.
struct ComparedRankings {
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
        TableWriter::check(output, TableKind::Differences)
            .map_err(|error| arguments.name_redirection(error))?;
    }
    let metrics = arguments.metrics()?;
    let comparisons =
        metrics.iter().map(|metric| comparison(arguments, metric)).collect::<Result<Vec<_>>>()?;
    let first = &comparisons[0]; // there is a metric at least
    if let Some(output) = &output {
        let ComparedRankings { read, aligned, pairs, .. } = first;
        let metadata = [read.metric.as_str(), &read.convention.to_string()];
        write_differences(output, &read.systems, aligned, pairs, metadata)?;
        tracing::info!("wrote {output}");
    }
    if !quiet {
        for warning in &first.read.warnings {
            super::message(format_args!("warning: {warning}"));
        }
        for note in notes_of(&comparisons) {
            super::message(format_args!("note: {note}"));
        }
    }
    let text = || match arguments.format {
        CompareFormat::Text => text::text(first),
        CompareFormat::Markdown => table::markdown(&comparisons),
        CompareFormat::Latex => table::latex(&comparisons),
    };
    arguments.json.print(text, || json::object(first))?;
    if arguments.fail_if_worse {
        comparisons.iter().try_for_each(ComparedRankings::check_not_worse)?;
    }
    Ok(())
}

/// Returns the notes of all comparisons. If there are several, a note begins with the metric.
fn notes_of(comparisons: &[ComparedRankings]) -> Vec<String> {
    let mut notes = Vec::new();
    for comparison in comparisons {
        for note in &comparison.notes {
            notes.push(match comparisons.len() {
                1 => note.clone(),
                _ => format!("{}: {note}", comparison.read.metric),
            });
        }
    }
    notes
}

impl ComparedRankings {
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
                    "{} is worse than {} by {} ({:.6} against {:.6}, {})",
                    name(pair.b),
                    name(pair.a),
                    self.read.metric,
                    pair.mean_b,
                    pair.mean_a,
                    shown_p(pair.corrected)
                )
            })
            .collect();
        if worse.is_empty() {
            return Ok(());
        }
        Err(Error::QualityGate { problem: format!("quality gate failed: {}", worse.join("; ")) })
    }
}

/// Formats a p value for a sentence.
fn shown_p(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p {p:.4}") }
}

impl CompareArguments {
    /// Returns the metrics to compare. Only tables for papers have several.
    fn metrics(&self) -> Result<Vec<&str>> {
        let metrics: Vec<&str> = self.metric.split(',').collect();
        let [first, _, ..] = metrics[..] else { return Ok(metrics) };
        if let Some(place) = (1..metrics.len()).find(|place| metrics[..*place].contains(&metrics[*place])) {
            return Err(Error::usage(
                format_args!("metric {} is given twice", metrics[place]),
                "pass each metric once",
            ));
        }
        if self.format == CompareFormat::Text {
            return Err(Error::usage(
                format_args!("--metric {}: compare tests one metric", self.metric),
                format_args!(
                    "run it once for each, such as --metric {first}, or pass --format markdown or latex for a table of all"
                ),
            ));
        }
        if self.output.is_some() {
            return Err(Error::usage(
                format_args!("--metric {}: --output has the differences by one metric", self.metric),
                "pass one metric, or remove --output",
            ));
        }
        Ok(metrics)
    }

    /// Adds to the remedy of an error about `--output` that tables for papers are printed, not written.
    fn name_redirection(&self, error: Error) -> Error {
        let (format, extension) = match self.format {
            CompareFormat::Text => return error,
            CompareFormat::Markdown => ("markdown", "md"),
            CompareFormat::Latex => ("latex", "tex"),
        };
        error.map_remedy(|remedy| {
            format!(
                "the table of --format {format} is printed: remove --output and add > table.{extension}; for the \
                 differences of each query, {remedy}"
            )
        })
    }

    /// Fails if --fail-if-worse could never fail, because the tests only ask whether a later file is better.
    fn check_gate(&self, read: &ReadSystems) -> Result<()> {
        let (better, better_name, worse_name) = match read.higher_is_better {
            true => (AlternativeArgument::Greater, "greater", "less"),
            false => (AlternativeArgument::Less, "less", "greater"),
        };
        if !self.fail_if_worse || self.alternative != better {
            return Ok(());
        }
        Err(Error::usage(
            format_args!(
                "--fail-if-worse can never fail with --alternative {better_name}: it tests only whether the later file is \
                 better by {}",
                read.metric
            ),
            format_args!("pass --alternative {worse_name}, or two-sided (the default)"),
        ))
    }

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

fn comparison(arguments: &CompareArguments, metric: &str) -> Result<ComparedRankings> {
    let qrels = arguments.store.locate_optional(arguments.qrels.as_ref())?;
    let by_qrels = qrels.is_some().then_some("trec");
    let rules = ReadingRules {
        convention: arguments.convention.as_deref().or(by_qrels).map(str::parse).transpose()?,
        label_map: arguments.label_map.as_deref().map(str::parse).transpose()?,
        judgments: qrels.map(Judgments::Qrels),
    };
    let mut sources = arguments.baselines()?;
    for ranking in &arguments.rankings.in_order {
        let (name, path) = split_name(&ranking.text);
        let location = arguments.store.locate(path)?;
        sources.push(ComparedFile {
            name: name.map(str::to_owned),
            is_run: ranking.is_run,
            ..ComparedFile::new(location)
        });
    }
    for source in &sources {
        tracing::info!("reading {}", source.location);
    }
    let read = read_systems(&sources, metric, &rules, arguments.threads.requested())
        .map_err(with_remedy_for_metrics)?;
    if read.systems.len() < 2 {
        return Err(Error::usage("only one system to compare", "pass a second file"));
    }
    arguments.check_gate(&read)?;
    let aligned = AlignedSystems::of(&read.systems)?;
    tracing::info!(
        "comparing {} by {}, convention {}",
        counted(read.systems.len() as u64, "system", "systems"),
        read.metric,
        read.convention
    );
    tracing::info!("{}", counted(aligned.queries.len() as u64, "query", "queries"));
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
    Ok(ComparedRankings { read, aligned, options, means, pairs, notes })
}

/// Adds to the remedy of an error about a text file without scores that metrics are read from Parquet only.
fn with_remedy_for_metrics(error: Error) -> Error {
    if !error.to_string().ends_with("not predictions: no column score") {
        return error;
    }
    error.map_remedy(|remedy| {
        format!(
            "{remedy}; per-query metrics are compared from Parquet: write them with planetree evaluate FILE --output METRICS.parquet"
        )
    })
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
