use super::*;

fn fault(text: &str) -> (String, String) {
    let error = text.parse::<Convention>().unwrap_err();
    assert_eq!(error.exit_code(), 2);
    (error.to_string(), error.remedy().unwrap().to_owned())
}

#[test]
fn presets_are_read_by_name_and_differ() {
    for (place, preset) in presets().iter().enumerate() {
        let convention: Convention = preset.name.parse().unwrap();
        assert_eq!(convention.to_string(), preset.name);
        assert_eq!(preset.name.to_uppercase().parse::<Convention>().unwrap(), convention);
        for other in &presets()[..place] {
            assert_ne!(convention, other.convention().unwrap(), "{} {}", preset.name, other.name);
        }
    }
    assert_eq!("".parse::<Convention>().unwrap(), Convention::default());
}

#[test]
fn switches_go_over_the_preset() {
    let convention: Convention = "letor4, gain=linear ,ties=WORST".parse().unwrap();
    assert_eq!(convention.to_string(), "letor4,gain=linear,ties=worst");
    assert_eq!((convention.short, convention.binary_ties), (Short::Zero, Ties::Worst));
    let whole: Convention = "discount=letor,short=zero".parse().unwrap();
    assert_eq!(whole, "letor4".parse().unwrap());
    assert_eq!(whole.to_string(), "planetree,discount=letor,short=zero");
    let set: Convention = "catboost,empty=0.5".parse().unwrap();
    assert_eq!((set.map_empty, set.recall_empty), (Empty::Value(0.5), Empty::Value(0.5)));
    assert_eq!(set.to_string(), "catboost,empty=0.5");
}

#[test]
fn faults_name_what_was_meant() {
    assert_eq!(fault("letor"), ("unknown convention \"letor\"".into(), "did you mean letor4?".into()));
    assert_eq!(fault("trec_eval").1, "did you mean trec?");
    let (problem, remedy) = fault("something");
    assert_eq!(problem, "unknown convention \"something\"");
    assert!(remedy.starts_with("the conventions are planetree, letor4, mslr"), "{remedy}");
    assert_eq!(
        fault("letor4,gian=linear"),
        ("convention \"letor4,gian=linear\": unknown switch \"gian\"".into(), "did you mean gain?".into())
    );
    assert_eq!(
        fault("ties=worse"),
        ("convention \"ties=worse\": ties=worse: no such value".into(), "did you mean worst?".into())
    );
    assert_eq!(fault("depth=0").1, "valid values of depth: all, a depth such as 10");
    assert_eq!(
        fault("gain=l+"),
        (
            "convention \"gain=l+\": gain=l+: the formula \"l+\" ends too early".into(),
            "valid values of gain: exp2, linear, positive, a table such as 0:1:3:7, a formula such as 3^l-1"
                .into()
        )
    );
    assert_eq!(fault("gain=linear,letor4").1, "did you mean letor4?");
    assert_eq!(
        fault("ydf,binary_ties=average").0,
        "convention \"ydf,binary_ties=average\": map_normaliser=found cannot be combined with binary_ties=average"
    );
    for text in [
        "relevant=x",
        "relevant=inf",
        "empty=nan",
        "err_grade=0",
        "err_grade=65",
        "scores=16",
        "discount=log",
    ] {
        assert!(fault(text).0.contains("no such value"), "{text}");
    }
}

#[test]
fn every_switch_is_printed_and_explained() {
    let values = Convention::default().values();
    assert_eq!(values.len(), switches().len());
    for (switch, (name, value)) in switches().iter().zip(values) {
        assert_eq!(switch.name, name);
        assert!(!switch.values.is_empty());
        let mut convention = Convention::default();
        (switch.read)(&mut convention, &value).unwrap();
        assert_eq!(convention, Convention::default(), "{name}={value}");
    }
}

#[test]
fn metrics_that_are_one_under_a_convention_are_found() {
    let repeated = |convention: &str, names: &[&str]| {
        let metrics: Vec<Metric> = names.iter().map(|name| name.parse().unwrap()).collect();
        convention.parse::<Convention>().unwrap().repeated(&metrics).map(|(problem, _)| problem)
    };
    assert_eq!(repeated("mohan-cost", &["auc", "p@5", "pauc@0-5"]), None);
    assert_eq!(repeated("mohan-cost,auc=query", &["auc", "auc_pooled"]), None);
    assert_eq!(repeated("planetree", &["pauc@0-5", "pauc_pooled@0-5"]), None);
    assert_eq!(repeated("planetree", &["err", "ERR"]).unwrap(), "metric err is given twice");
    let problem = repeated("mohan-cost", &["p@5", "pauc_pooled@0-5", "pauc@0-5"]).unwrap();
    assert!(
        problem.starts_with("pauc_pooled@0-5 and pauc@0-5 are one metric under the convention mohan-cost")
    );
}
