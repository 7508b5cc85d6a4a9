//! Tests dependency graphs, names of inputs and outputs, command lines, and the errors that are reported before a
//! step runs.

use super::document::PipelineDocument;
use super::draft::StepDraft;
use super::graph::StepGraph;
use super::kinds::{KINDS, RESOURCE_KEYS, RUN_CONTROLLED};
use super::parameters::PipelineParameters;
use super::*;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Access;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn commands() -> Commands {
    Commands::new(planetree_cli::command_line())
}

fn graph(text: &str) -> Result<StepGraph> {
    let document = PipelineDocument::parse("p.toml", text)?;
    let parameters = PipelineParameters::resolve(&document.parameters, &BTreeMap::new(), &[])?;
    StepGraph::of(StepDraft::all(&document, &parameters)?, &commands())
}

/// Returns, for each step, its name, its dependencies and its command line. Inputs from other steps are marked with
/// `@`, outputs with `>`.
fn shown(graph: &StepGraph) -> Vec<(String, Vec<String>, String)> {
    let steps = &graph.steps;
    let of = |step: &PipelineStep| {
        let needs = step.needs.iter().map(|need| steps[*need].name.clone()).collect();
        let line = step.command_line(|word| match word {
            super::graph::WordContent::Plain(text) => text.clone(),
            super::graph::WordContent::Input { prefix, input } => match &step.inputs[*input].from {
                Some(from) => {
                    format!("{prefix}@{}{}", steps[from.step].outputs[from.output].text, from.below)
                }
                None => format!("{prefix}{}", step.inputs[*input].text),
            },
            super::graph::WordContent::Output { prefix, output } => {
                format!("{prefix}>{}", step.outputs[*output].text)
            }
            super::graph::WordContent::Run => "@run".to_owned(),
        });
        (step.name.clone(), needs, line.join(" "))
    };
    steps.iter().map(of).collect()
}

fn rejected(text: &str) -> String {
    let error = graph(text).map(|graph| shown(&graph)).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    format!("{error} / {}", error.remedy().unwrap_or_default())
}

#[test]
fn an_option_may_have_several_named_outputs() {
    let text = r#"
        [step.ranker]
        kind = "train"
        data = "elsewhere"
        valid = "vali"
        model_for = { err = "best-err.parquet", "ndcg@10" = "best-ndcg.parquet" }

        [step.scores]
        kind = "predict"
        model = "ranker.model_for.err"
        data = "elsewhere"
    "#;
    let steps = shown(&graph(text).unwrap());
    assert_eq!(
        steps[0].2,
        "train --data elsewhere --valid vali --model >ranker.parquet --model-for err=>best-err.parquet \
         --model-for ndcg@10=>best-ndcg.parquet"
    );
    assert_eq!(steps[1].2, "predict --model @best-err.parquet --data elsewhere --output >scores.parquet");
    let text = "[step.a]\nkind = 'train'\ndata = 'd'\nmodel_for = 'err=e'\n";
    assert!(rejected(text).contains("model_for must be a table of names and paths"));
}

#[test]
fn steps_are_ordered_by_inputs_and_outputs() {
    let text = r#"
        [step.scores]
        kind = "predict"
        model = "ranker"
        data = "elsewhere/test"
        scores = "scores.txt"

        [step.ranker]
        kind = "train"
        data = ["train", "more/train"]
        valid = { a = "vali", b = "./vali" }
        preset = "mart"
        set = { num_trees = 10, metric = ["ndcg@10", "err"] }
        rounds = "log/rounds.parquet"

        [step.vali]
        kind = "convert"
        input = "vali.txt"

        [step.train]
        kind = "convert"
        input = ["a.txt", "b.txt"]
        sort-queries = true
        lenient = false

        [step.quality]
        kind = "evaluate"
        predictions = "scores.parquet"
        metrics = ["ndcg@10", "err"]

        [step.last]
        kind = "describe"
        path = "log/rounds.parquet"
        after = "quality"
    "#;
    let shown = shown(&graph(text).unwrap());
    let expected = [
        ("vali", &[][..], "convert vali.txt --output >vali"),
        ("train", &[], "convert a.txt b.txt --sort-queries --output >train"),
        (
            "ranker",
            &["vali", "train"],
            "train --data @train --data more/train --valid a=@vali --valid b=./vali --preset mart \
             --set num_trees=10 --set metric=ndcg@10,err --model >ranker.parquet --rounds >log/rounds.parquet",
        ),
        (
            "scores",
            &["ranker"],
            "predict --model @ranker.parquet --data elsewhere/test --output >scores.parquet --scores >scores.txt",
        ),
        (
            "quality",
            &["scores"],
            "evaluate --predictions @scores.parquet --metrics ndcg@10,err --output >quality.parquet",
        ),
        ("last", &["ranker", "quality"], "describe @log/rounds.parquet"),
    ];
    for (shown, (name, needs, line)) in shown.iter().zip(&expected) {
        assert_eq!((shown.0.as_str(), shown.2.as_str()), (*name, *line));
        assert_eq!(shown.1, *needs, "{name}");
    }
    assert_eq!(shown.len(), expected.len());
}

#[test]
fn a_star_matches_steps_before_a_path_below_them() {
    let text = r#"
        [step.rotation]
        for_each = { preset = ["mart", "rf-list"] }
        kind = "cv"
        data = "data"
        preset = "{preset}"

        [step.quality]
        kind = "evaluate"
        predictions = "rotation-*/predictions.parquet"
        print = false

        [step.data]
        kind = "convert"
        input = "elsewhere-*/S1.txt"
    "#;
    let graph = graph(text).unwrap();
    let shown = shown(&graph);
    let line = |name: &str| shown.iter().find(|step| step.0 == name).unwrap();
    let (_, needs, quality) = line("quality");
    assert_eq!(needs, &["rotation-mart", "rotation-rf-list"]);
    let each = |name: &str| format!("--predictions {name}=@rotation-{name}/predictions.parquet");
    assert!(quality.contains(&format!("{} {}", each("mart"), each("rf-list"))), "{quality}");
    assert!(line("data").2.contains("elsewhere-*/S1.txt"), "no step matches, so it is a path");
}

#[test]
fn for_each_expands_and_a_star_collects_the_steps() {
    let text = r#"
        [parameters]
        presets = ["mart", "lambdamart"]

        [step.model]
        for_each = { preset = "{presets}", rate = [0.1, 0.05] }
        kind = "train"
        data = "data"
        preset = "{preset}"
        set = { learning_rate = "{rate}" }
        rounds = "rounds-{preset}-{rate}.parquet"

        [step.scores]
        for_each = { preset = "{presets}", rate = [0.1, 0.05] }
        kind = "predict"
        model = "model-{preset}-{rate}"
        data = "data"

        [step.compare]
        kind = "compare"
        files = "scores-mart-*"
        top = 0

        [step.logs]
        kind = "evaluate"
        predictions = { one = "scores-lambdamart-0.05" }
        join = "model-mart-0.1.rounds"
        by = "x"
    "#;
    let shown = shown(&graph(text).unwrap());
    let names: Vec<&str> = shown.iter().map(|step| step.0.as_str()).collect();
    assert_eq!(
        names[..4],
        ["model-mart-0.1", "model-mart-0.05", "model-lambdamart-0.1", "model-lambdamart-0.05"]
    );
    let line = |name: &str| &shown.iter().find(|step| step.0 == name).unwrap().2;
    assert_eq!(
        line("compare"),
        "compare 0_1=@scores-mart-0.1.parquet 0_05=@scores-mart-0.05.parquet --top 0 --output >compare.parquet"
    );
    assert_eq!(
        line("logs"),
        "evaluate --predictions one=@scores-lambdamart-0.05.parquet --join @rounds-mart-0.1.parquet --by x \
         --output >logs.parquet"
    );
}

#[test]
fn invalid_pipelines_are_rejected_with_their_position() {
    let convert = "[step.a]\nkind = \"convert\"\ninput = \"x\"\n";
    for (text, expected) in [
        ("[step.a]\nkind = \"trian\"\n", "p.toml:2:8: unknown kind \"trian\" / did you mean train?"),
        ("[step.a]\ninput = \"x\"\n", "p.toml:1:7: step a has no kind / write kind"),
        (
            "[step.a]\nkind = \"train\"\ndta = \"x\"\n",
            "p.toml:3:1: unknown key \"dta\" in step a of kind train / did you mean data?",
        ),
        (
            "[step.a]\nkind = \"train\"\nnum_trees = 50\n",
            "p.toml:3:1: unknown key \"num_trees\" in step a of kind train / num_trees is a training parameter: write \
             set = { num_trees = 50 }",
        ),
        (
            "[step.a]\nkind = \"cv\"\nobjective = \"squared\"\n",
            "in step a of kind cv / objective is a training parameter: write set = { objective = \"squared\" }",
        ),
        (
            "[step.a]\nkind = \"convert\"\nnum_trees = 50\n",
            "unknown key \"num_trees\" in step a of kind convert / `planetree convert --help`",
        ),
        ("[step.a]\nkind = \"train\"\nresume = true\n", "p.toml:3:1: resume is set by the run"),
        (
            "[step.a]\nkind = \"train\"\n",
            "p.toml:1:7: step a of kind train has no data / add data = \"...\"; `planetree train --help`",
        ),
        (
            "[step.a]\nkind = \"predict\"\n",
            "step a of kind predict has no model and data / add model = \"...\", data",
        ),
        (
            "[step.a]\nkind = \"evaluate\"\n",
            "step a of kind evaluate has no files (or predictions, scores, run) / add files = \"...\"",
        ),
        (
            "[step.a]\nkind = \"convert\"\ninput = \"x\"\nneeds = \"b\"\n",
            "p.toml:4:1: unknown key \"needs\" in step a of kind convert / did you mean after?",
        ),
        (
            "[step.a]\nkind = \"export\"\nmodel = \"m\"\nformat = \"lightgbmm\"\n",
            "p.toml:4:1: step a: invalid value 'lightgbmm' for '--format <FORMAT>'",
        ),
        (
            "[step.a]\nkind = \"train\"\ndata = \"d\"\nmemory_limit = \"abc\"\n",
            "p.toml:4:1: step a: invalid value 'abc' for '--memory-limit <SIZE>'",
        ),
        (
            "[step.a]\nkind = \"train\"\ndata = \"d\"\n\nthreads = 0\n",
            "p.toml:5:1: step a: invalid value '0' for '--threads <N>'",
        ),
        (
            "[step.a]\nkind = \"evaluate\"\nfiles = \"p\"\nfail_below = [\"ndgc@5=1\"]\n",
            "p.toml:4:1: step a: invalid value 'ndgc@5=1' for '--fail-below <METRIC=VALUE>'",
        ),
        (
            "[step.a]\nkind = \"cv\"\ndata = \"x\"\nfolds = \"many\"\n",
            "step a: invalid value 'many' for '--folds <K>'",
        ),
        (
            "[step.a]\nkind = \"convert\"\ninput = \"x\"\nlenient = 1\n",
            "p.toml:4:11: lenient must be true or false",
        ),
        (
            "[step.a]\nkind = \"predict\"\nmodel = [\"x\", \"y\"]\ndata = \"d\"\n",
            "p.toml:3:9: model accepts only one value",
        ),
        (
            "[step.a]\nkind = \"predict\"\nmodel = { m = \"y\" }\ndata = \"d\"\n",
            "model does not accept names",
        ),
        ("[step.a]\nkind = \"convert\"\ninput = \"-\"\n", "p.toml:3:9: steps have no standard input"),
        ("[step.a]\nkind = \"convert\"\ninput = \"\"\n", "p.toml:3:9: input must be a path"),
        ("[step.a]\nkind = \"convert\"\ninput = \"x\"\noutput = [1]\n", "p.toml:4:10: output must be a path"),
        (
            "[step.a]\nkind = \"convert\"\ninput = \"x\"\nsort_queries = {}\n",
            "p.toml:4:16: sort_queries must be true or false",
        ),
        ("[step.a]\nkind = \"convert\"\ninput = \"{x}\"\n", "p.toml:3:9: unknown parameter \"x\""),
        (
            &format!("{convert}[step.b]\nkind = \"convert\"\ninput = \"y\"\noutput = \"a/\"\n"),
            "p.toml:7:10: a is written by both step a (p.toml:1:7) and step b",
        ),
        (
            &format!("{convert}[step.b]\nkind = \"describe\"\npath = \"a\"\nprint = \"./a/b.txt\"\n"),
            "output a/b.txt of step b is inside output a of step a",
        ),
        (
            &format!("{convert}output = \"run.json\"\n"),
            "p.toml:4:10: output run.json of step a is reserved for the run itself",
        ),
        (
            &format!("{convert}output = \"b\"\n[step.b]\nkind = \"describe\"\npath = \"z\"\n"),
            "p.toml:4:10: output b of step a is the name of another step",
        ),
        (&format!("{convert}after = \"c\"\n"), "p.toml:4:9: no step \"c\""),
        ("[step.a]\nkind = \"convert\"\ninput = \"a\"\n", "p.toml:3:9: step a reads its own output a"),
        ("[step.a]\nkind = \"describe\"\npath = \"x\"\nprint = false\n", "p.toml:1:7: step a has no output"),
        ("[step.a]\nkind = \"describe\"\npath = \"x\"\nprint = [1]\n", "p.toml:4:9: print must be a path"),
        (
            "[step.a]\nkind = \"convert\"\nfor_each = 3\ninput = \"x\"\n",
            "p.toml:3:12: for_each must be a table of variables",
        ),
        ("[step.a]\nkind = \"convert\"\nfor_each = { x = [] }\ninput = \"x\"\n", "x has no values"),
        (
            "[step.a]\nkind = \"convert\"\nfor_each = { x = [[1]] }\ninput = \"x\"\n",
            "a value of for_each is a list",
        ),
        ("[step.a]\nkind = \"convert\"\nfor_each = { x = [1, 1] }\ninput = \"x\"\n", "duplicate step a-1"),
    ] {
        let message = rejected(text);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_cycle_is_named() {
    let text = r#"
        [step.other]
        kind = "convert"
        input = "x"
        [step.a]
        kind = "convert"
        input = "c"
        [step.b]
        kind = "convert"
        input = ["a", "other"]
        [step.c]
        kind = "convert"
        input = "b"
    "#;
    let message = rejected(text);
    assert!(message.contains("steps depend on each other: a needs c needs b needs a"), "{message}");
    let message = rejected("[step.a]\nkind = \"convert\"\ninput = \"x\"\nafter = \"a\"\n");
    assert!(message.contains("a needs a"), "{message}");
}

#[test]
fn the_table_of_kinds_matches_the_command_line() {
    let root = planetree_cli::command_line();
    for kind in KINDS {
        let Some(command) = root.find_subcommand(kind.name) else { continue };
        let keys: Vec<String> = command
            .get_arguments()
            .filter_map(|argument| argument.get_long())
            .map(|long| long.replace('-', "_"))
            .collect();
        let inputs = kind.inputs.iter().map(|input| input.key);
        for key in inputs.chain(kind.outputs.iter().map(|output| output.key)) {
            assert!(
                kind.positional == Some(key) || keys.iter().any(|known| known == key),
                "{} {key}",
                kind.name
            );
        }
        let positional = command.get_positionals().count();
        assert_eq!(positional, usize::from(kind.positional.is_some()), "{}", kind.name);
        // If a file option were missing from the table, a step could read or write a file without the run noticing.
        let takes_value =
            |argument: &&clap::Arg| !argument.is_positional() && argument.get_action().takes_values();
        for argument in command.get_arguments().filter(takes_value) {
            let key = argument.get_long().unwrap_or_default().replace('-', "_");
            let value_names = argument
                .get_value_names()
                .into_iter()
                .flatten()
                .map(|name| name.as_str())
                .collect::<String>();
            let names_file = ["FILE", "DATASET", "DIR", "MODEL", "PATH", "RUN"]
                .iter()
                .any(|word| value_names.contains(word));
            let known = kind.input(&key).is_some()
                || kind.is_output(&key)
                || [RESOURCE_KEYS, RUN_CONTROLLED, &["allow_path"]].concat().contains(&key.as_str());
            assert!(!names_file || known, "{} --{key} {value_names} is not in the table of kinds", kind.name);
        }
        assert!(
            !kind
                .inputs
                .iter()
                .any(|input| RESOURCE_KEYS.contains(&input.key) || RUN_CONTROLLED.contains(&input.key))
        );
    }
}

/// Plans a pipeline whose file and run directory are in `root`.
fn plan(root: &Path, text: &str, set: &[&str], force: &[&str]) -> Result<PipelinePlan> {
    fs::write(root.join("p.toml"), text).unwrap();
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let request = RunRequest {
        pipeline: root.join("p.toml").to_string_lossy().into_owned(),
        output: Some(root.join("run").to_string_lossy().into_owned()),
        set: owned(set),
        force: owned(force),
        resume: false,
        access: Access::Explicit,
    };
    PipelinePlan::new(&request, &commands())
}

#[test]
fn planning_rejects_invalid_settings_of_steps() {
    let root = tempfile::tempdir().unwrap();
    let train = "[step.a]\nkind = \"train\"\ndata = \"d\"\n";
    let compare = "[step.a]\nkind = \"compare\"\nrun = [\"x\", \"y\"]\nqrels = \"q\"\n";
    let evaluate = "[step.a]\nkind = \"evaluate\"\nfiles = \"x\"\n";
    let scores = "[step.a]\nkind = \"predict\"\nmodel = \"m\"\ndata = \"d\"\n";
    for (text, set, force, expected) in [
        (format!("{train}preset = \"martt\"\n"), "", "", "step a: "),
        (
            format!("{train}set = {{ num_treees = 3 }}\n"),
            "",
            "",
            "p.toml:4:9: step a: unknown parameter \"num_treees\"",
        ),
        (format!("[parameters]\nx = 1\n{train}"), "", "", "p.toml:2:1: unused parameter x"),
        (train.to_owned(), "y=1", "", "--set y: unknown parameter"),
        (train.to_owned(), "", "b", "--force b: unknown step"),
        (format!("[pipeline]\nname = \"a/b\"\n{train}"), "", "", "p.toml:2:8: invalid pipeline name \"a/b\""),
        (format!("{train}model = \"ftp://h/x\"\n"), "", "", "p.toml:4:9: "),
        (format!("{compare}metric = \"ndgc\"\n"), "", "", "p.toml:5:1: step a: unknown metric \"ndgc\""),
        (
            "[step.a]\nkind = \"report\"\nmetric = \"ndgc\"\n".to_owned(),
            "",
            "",
            "p.toml:3:1: step a: unknown metric \"ndgc\"",
        ),
        (
            format!("{evaluate}metrics = [\"ndcg@5\"]\nfail_below = [\"map=0.5\"]\n"),
            "",
            "",
            "p.toml:5:1: step a: fail_below = \"map=0.5\": the metric is not computed",
        ),
        (format!("{evaluate}fail_below = \"p@7=0.5\"\n"), "", "", "p.toml:4:1: step a: fail_below = "),
        (
            "[step.a]\nkind = \"cv\"\ndata = \"d\"\nfolds = 1\n".to_owned(),
            "",
            "",
            "p.toml:4:1: step a: 1 fold is too few: at least 3 are needed",
        ),
        (
            format!("{scores}[step.b]\nkind = \"compare\"\nfiles = \"a\"\n"),
            "",
            "",
            "p.toml:7:9: step b: only one system to compare",
        ),
    ] {
        let set: Vec<&str> = Some(set).filter(|set| !set.is_empty()).into_iter().collect();
        let force: Vec<&str> = Some(force).filter(|force| !force.is_empty()).into_iter().collect();
        let error = plan(root.path(), &text, &set, &force).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit_code(), 2, "{error}");
    }
}

#[test]
fn gates_and_comparisons_that_are_possible_are_planned() {
    let root = tempfile::tempdir().unwrap();
    for text in [
        "[step.a]\nkind = \"evaluate\"\nfiles = \"x\"\nfail_below = [\"map=0.5\"]\n",
        "[step.a]\nkind = \"evaluate\"\nfiles = \"x\"\nmetrics = \"p@7\"\nfail_below = [\"p@7=0.5\"]\n",
        "[step.a]\nkind = \"cv\"\ndata = \"d\"\nfolds = 2\nno_valid = true\n",
        "[step.a]\nkind = \"compare\"\nfiles = \"several.parquet\"\n",
        "[step.a]\nkind = \"compare\"\nfiles = [\"x\", \"y\"]\nmetric = \"column\"\n",
        "[step.a]\nkind = \"predict\"\nmodel = \"m\"\ndata = \"d\"\n[step.b]\nkind = \"compare\"\nfiles = \"a\"\n\
         data = \"d\"\nfeature = \"f1\"\n",
    ] {
        assert!(plan(root.path(), text, &[], &[]).is_ok(), "{text}");
    }
}

#[test]
fn the_files_and_runs_of_a_comparison_keep_their_order() {
    let line = |keys: &str| {
        let text = format!("[step.a]\nkind = \"compare\"\nmetric = \"map\"\n{keys}\nqrels = \"q\"\n");
        shown(&graph(&text).unwrap())[0].2.clone()
    };
    let end = "--metric map --qrels q --output >a.parquet";
    assert_eq!(line("run = \"r\"\nfiles = \"f\""), format!("compare --run r f {end}"));
    assert_eq!(line("files = \"f\"\nrun = \"r\""), format!("compare f --run r {end}"));
    assert_eq!(
        line("run = [\"r\", \"s\"]"),
        "compare --metric map --run r --run s --qrels q --output >a.parquet"
    );
}

#[test]
fn a_missing_input_is_named_with_a_suggestion() {
    let root = tempfile::tempdir().unwrap();
    let text = "[step.judgments]\nkind = \"convert\"\ninput = \"ROOT/x.txt\"\n\n[step.b]\nkind = \"describe\"\npath = \"judgements\"\n";
    let text = text.replace("ROOT", &root.path().to_string_lossy());
    let check = || plan(root.path(), &text, &[], &[]).unwrap().check_inputs(&mut IdentityCache::default());
    let error = check().unwrap_err();
    assert!(error.to_string().contains("p.toml:3:9: step judgments: input = "), "{error}");
    assert_eq!(error.exit_code(), 1);
    fs::write(root.path().join("x.txt"), "1 qid:1 1:1\n").unwrap();
    let error: Error = check().unwrap_err();
    assert!(error.to_string().contains("p.toml:7:8: step b: path = judgements: no such file"), "{error}");
    assert_eq!(error.remedy(), Some("did you mean judgments?"));
}
