//! Graphs, names, command lines and everything that is refused before a step runs.

use super::document::Document;
use super::draft::Draft;
use super::graph::Graph;
use super::kinds::{DECIDED, KINDS, MEANS};
use super::parameters::Parameters;
use super::*;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Access;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn commands() -> Commands {
    Commands::new(planetree_cli::command_line())
}

fn graph(text: &str) -> Result<Graph> {
    let document = Document::parse("p.toml", text)?;
    let parameters = Parameters::settle(&document.parameters, &BTreeMap::new(), &[])?;
    Graph::of(Draft::all(&document, &parameters)?, &commands())
}

/// Step by step: its name, what it waits for, and its command line with names in place of paths.
fn shown(graph: &Graph) -> Vec<(String, Vec<String>, String)> {
    let steps = &graph.steps;
    let of = |step: &Step| {
        let needs = step.needs.iter().map(|need| steps[*need].name.clone()).collect();
        let line = step.command_line(|word| match word {
            super::graph::WordText::Plain(text) => text.clone(),
            super::graph::WordText::Input { before, input } => match &step.inputs[*input].from {
                Some(from) => {
                    format!("{before}@{}{}", steps[from.step].outputs[from.output].text, from.below)
                }
                None => format!("{before}{}", step.inputs[*input].text),
            },
            super::graph::WordText::Output(place) => format!(">{}", step.outputs[*place].text),
            super::graph::WordText::Run => "@run".to_owned(),
        });
        (step.name.clone(), needs, line.join(" "))
    };
    steps.iter().map(of).collect()
}

fn refused(text: &str) -> String {
    let error = graph(text).map(|graph| shown(&graph)).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    format!("{error} / {}", error.remedy().unwrap_or_default())
}

#[test]
fn what_one_step_writes_and_another_reads_makes_the_order() {
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
fn a_star_may_stand_before_what_is_below_each_step() {
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
    assert!(line("data").2.contains("elsewhere-*/S1.txt"), "no step is called so: a path");
}

#[test]
fn for_each_makes_steps_and_a_star_gathers_them() {
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
fn what_cannot_be_is_refused_with_its_place() {
    let convert = "[step.a]\nkind = \"convert\"\ninput = \"x\"\n";
    for (text, says) in [
        ("[step.a]\nkind = \"trian\"\n", "p.toml:2:8: unknown kind of step \"trian\" / did you mean train?"),
        ("[step.a]\ninput = \"x\"\n", "p.toml:1:7: step a has no kind / write kind"),
        (
            "[step.a]\nkind = \"train\"\ndta = \"x\"\n",
            "p.toml:3:1: unknown key \"dta\" of step a, a train step / did you mean data?",
        ),
        ("[step.a]\nkind = \"train\"\nresume = true\n", "p.toml:3:1: resume is not for pipelines"),
        (
            "[step.a]\nkind = \"train\"\n",
            "p.toml:1:7: step a: the following required arguments were not provided: --data",
        ),
        (
            "[step.a]\nkind = \"cv\"\ndata = \"x\"\nfolds = \"many\"\n",
            "step a: invalid value 'many' for '--folds <K>'",
        ),
        (
            "[step.a]\nkind = \"convert\"\ninput = \"x\"\nlenient = 1\n",
            "p.toml:4:11: lenient is true or false",
        ),
        (
            "[step.a]\nkind = \"predict\"\nmodel = [\"x\", \"y\"]\ndata = \"d\"\n",
            "p.toml:3:9: model takes one value",
        ),
        ("[step.a]\nkind = \"predict\"\nmodel = { m = \"y\" }\ndata = \"d\"\n", "model takes no names"),
        (
            "[step.a]\nkind = \"convert\"\ninput = \"-\"\n",
            "p.toml:3:9: a step of a pipeline has no standard input",
        ),
        ("[step.a]\nkind = \"convert\"\ninput = \"\"\n", "p.toml:3:9: input is no path"),
        ("[step.a]\nkind = \"convert\"\ninput = \"x\"\noutput = [1]\n", "p.toml:4:10: output is no path"),
        (
            "[step.a]\nkind = \"convert\"\ninput = \"x\"\nsort_queries = {}\n",
            "p.toml:4:16: sort_queries is true or false",
        ),
        ("[step.a]\nkind = \"convert\"\ninput = \"{x}\"\n", "p.toml:3:9: there is no parameter \"x\""),
        ("[parameters]\nx = 1\n[step.a]\nkind = \"convert\"\ninput = \"y\"\n", ""),
        (
            &format!("{convert}[step.b]\nkind = \"convert\"\ninput = \"y\"\noutput = \"a/\"\n"),
            "p.toml:7:10: a is written twice: by step a (p.toml:1:7) and by step b",
        ),
        (
            &format!("{convert}[step.b]\nkind = \"describe\"\npath = \"a\"\nprint = \"./a/b.txt\"\n"),
            "step b writes a/b.txt into a, which step a writes as a whole",
        ),
        (
            &format!("{convert}output = \"run.json\"\n"),
            "p.toml:4:10: step a writes run.json, which the run itself writes",
        ),
        (
            &format!("{convert}output = \"b\"\n[step.b]\nkind = \"describe\"\npath = \"z\"\n"),
            "p.toml:4:10: step a writes b, which is another step's name",
        ),
        (&format!("{convert}after = \"c\"\n"), "p.toml:4:9: there is no step \"c\""),
        ("[step.a]\nkind = \"convert\"\ninput = \"a\"\n", "p.toml:3:9: step a reads what it writes, a"),
        ("[step.a]\nkind = \"describe\"\npath = \"x\"\nprint = false\n", "p.toml:1:7: step a writes nothing"),
        ("[step.a]\nkind = \"describe\"\npath = \"x\"\nprint = [1]\n", "p.toml:4:9: print is no path"),
        (
            "[step.a]\nkind = \"convert\"\nfor_each = 3\ninput = \"x\"\n",
            "p.toml:3:12: for_each names no variables",
        ),
        ("[step.a]\nkind = \"convert\"\nfor_each = { x = [] }\ninput = \"x\"\n", "x has no values"),
        (
            "[step.a]\nkind = \"convert\"\nfor_each = { x = [[1]] }\ninput = \"x\"\n",
            "a value of for_each is a list",
        ),
        (
            "[step.a]\nkind = \"convert\"\nfor_each = { x = [1, 1] }\ninput = \"x\"\n",
            "two steps are called a-1",
        ),
    ] {
        if says.is_empty() {
            continue; // an unused parameter is told by the plan
        }
        let said = refused(text);
        assert!(said.contains(says), "{said}");
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
    let said = refused(text);
    assert!(said.contains("steps wait for each other: a needs c needs b needs a"), "{said}");
    let said = refused("[step.a]\nkind = \"convert\"\ninput = \"x\"\nafter = \"a\"\n");
    assert!(said.contains("a needs a"), "{said}");
}

#[test]
fn the_table_of_kinds_speaks_of_options_that_exist() {
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
        // An option that names a file and is not here would be read or written behind the run's back.
        for argument in command.get_arguments().filter(|argument| !argument.is_positional()) {
            let key = argument.get_long().unwrap_or_default().replace('-', "_");
            let told = argument
                .get_value_names()
                .into_iter()
                .flatten()
                .map(|name| name.as_str())
                .collect::<String>();
            let names_place =
                ["FILE", "DATASET", "DIR", "MODEL", "PATH", "RUN"].iter().any(|word| told.contains(word));
            let known = kind.input(&key).is_some()
                || kind.is_output(&key)
                || [MEANS, DECIDED, &["allow_path"]].concat().contains(&key.as_str());
            assert!(!names_place || known, "{} --{key} {told} is not in the table of kinds", kind.name);
        }
        assert!(!kind.inputs.iter().any(|input| MEANS.contains(&input.key) || DECIDED.contains(&input.key)));
    }
}

/// A plan in a directory that has `x.txt`.
fn plan(root: &Path, text: &str, set: &[&str], force: &[&str]) -> Result<Plan> {
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
    Plan::make(&request, &commands())
}

#[test]
fn a_plan_refuses_what_the_steps_would() {
    let root = tempfile::tempdir().unwrap();
    let train = "[step.a]\nkind = \"train\"\ndata = \"d\"\n";
    for (text, set, force, says) in [
        (format!("{train}preset = \"martt\"\n"), "", "", "step a: "),
        (
            format!("{train}set = {{ num_tree = 3 }}\n"),
            "",
            "",
            "p.toml:1:7: step a: unknown parameter \"num_tree\"",
        ),
        (format!("[parameters]\nx = 1\n{train}"), "", "", "p.toml:2:1: parameter x is used nowhere"),
        (train.to_owned(), "y=1", "", "--set y: the pipeline has no such parameter"),
        (train.to_owned(), "", "b", "--force b: the pipeline has no such step"),
        (
            format!("[pipeline]\nname = \"a/b\"\n{train}"),
            "",
            "",
            "p.toml:2:8: \"a/b\" is no name of a pipeline",
        ),
        (format!("{train}model = \"ftp://h/x\"\n"), "", "", "p.toml:4:9: "),
    ] {
        let set: Vec<&str> = Some(set).filter(|set| !set.is_empty()).into_iter().collect();
        let force: Vec<&str> = Some(force).filter(|force| !force.is_empty()).into_iter().collect();
        let error = plan(root.path(), &text, &set, &force).err().unwrap();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(error.exit_code(), 2, "{error}");
    }
}

#[test]
fn a_missing_input_is_named_with_what_was_meant() {
    let root = tempfile::tempdir().unwrap();
    let text = "[step.judgments]\nkind = \"convert\"\ninput = \"ROOT/x.txt\"\n\n[step.b]\nkind = \"describe\"\npath = \"judgements\"\n";
    let text = text.replace("ROOT", &root.path().to_string_lossy());
    let check = || plan(root.path(), &text, &[], &[]).unwrap().check_inputs(&mut Known::default());
    let error = check().unwrap_err();
    assert!(error.to_string().contains("p.toml:3:9: step judgments: input = "), "{error}");
    assert_eq!(error.exit_code(), 1);
    fs::write(root.path().join("x.txt"), "1 qid:1 1:1\n").unwrap();
    let error: Error = check().unwrap_err();
    assert!(
        error.to_string().contains("p.toml:7:8: step b: path = judgements: there is no such file"),
        "{error}"
    );
    assert_eq!(error.remedy(), Some("did you mean judgments?"));
}

#[test]
fn secrets_of_urls_stay_out_of_the_record() {
    for (text, kept) in [
        ("https://me:sentinel@host/a/b?sig=sentinel", "https://host/a/b"),
        ("name=https://me:sentinel@host/a", "name=https://host/a"),
        ("s3://bucket/a=b", "s3://bucket/a=b"),
        ("a,http://h/x,http://me:sentinel@h/y?z", "a,http://h/x,http://h/y"),
        ("a/b", "a/b"),
    ] {
        assert_eq!(public(text), kept);
    }
}
