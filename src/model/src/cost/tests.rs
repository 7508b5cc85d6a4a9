use super::*;

fn csv(text: &str) -> Result<CostTable> {
    CostTable::parse_csv(text, "costs.csv".to_owned())
}

fn fault(text: &str) -> String {
    csv(text).unwrap_err().to_string()
}

const NAMES: [&str; 4] = ["f1", "f2", "f3", "f4"];

#[test]
fn csv_and_toml_give_the_same_costs() {
    let table = csv("feature, cost, group\nf1,1,\n\n\"f3\",20,web\nf4, 20 ,web\nf2,0.5,\n").unwrap();
    let costs = table.of_features(&NAMES, "data").unwrap();
    assert_eq!([0, 1, 2, 3].map(|feature| costs.of(feature)), [1.0, 0.5, 20.0, 20.0]);
    assert_eq!(costs.total([0, 2, 3].into_iter()), 21.0);
    let toml = "[costs]\nf1 = 1.0\nf2 = 0.5\n[groups.web]\ncost = 20.0\nfeatures = [\"f3\", \"f4\"]\n";
    let other = CostTable::parse_toml(toml, String::new()).unwrap().of_features(&NAMES, "data").unwrap();
    assert_eq!([0, 1, 2, 3].map(|feature| other.of(feature)), [1.0, 0.5, 20.0, 20.0]);
    assert_eq!(other.total([2, 3].into_iter()), 20.0);
    assert_eq!(CostTable::of_record(&format!("{}seed = 1\n", table.to_record()), "costs.csv"), Some(table));
}

#[test]
fn a_group_is_paid_once_and_other_features_may_share_a_cost() {
    let table = csv("feature,cost,group\nf3,20,web\nf4,20,web\n*,3,\n").unwrap();
    let mut paid = crate::cost::PaidFeatures::new(table.of_features(&NAMES, "data").unwrap());
    assert_eq!([0, 1, 2, 3].map(|feature| paid.price(feature)), [3.0, 3.0, 20.0, 20.0]);
    assert_eq!(paid.pay([1, 2, 2].into_iter()), 23.0);
    assert_eq!([0, 1, 2, 3].map(|feature| paid.price(feature)), [3.0, 0.0, 0.0, 0.0]);
    assert_eq!(paid.pay([3, 1].into_iter()), 0.0);
}

#[test]
fn bad_files_are_rejected_by_name() {
    assert_eq!(fault("feature,price\nf1,1\n"), "costs.csv:1: unknown column \"price\"");
    assert_eq!(fault("feature\nf1\n"), "costs.csv:1: the header has no column \"cost\"");
    assert_eq!(fault("feature,cost\nf1,x\n"), "costs.csv:2: the cost \"x\" is not a number");
    assert_eq!(fault("feature,cost\nf1\n"), "costs.csv:2: 1 fields, but the header has 2");
    assert_eq!(fault("feature,cost\nf1,-2\n"), "costs.csv: line 2: the cost of f1 is -2");
    assert_eq!(fault("feature,cost\nf1,inf\n"), "costs.csv: line 2: the cost of f1 is inf");
    assert_eq!(fault("feature,cost\nf1,1\nf2,1\nf1,3\n"), "costs.csv: line 4: feature f1 is listed twice");
    assert_eq!(
        fault("feature,cost,group\nf1,1,web\nf2,3,web\n"),
        "costs.csv: line 3: group web has two costs, 1 and 3"
    );
    assert_eq!(fault(""), "costs.csv: no feature has a cost");
    let of = |text: &str| csv(text).unwrap().of_features(&NAMES, "train").unwrap_err();
    let unknown = of("feature,cost\nf1,1\nf22,1\n*,1\n");
    assert_eq!(unknown.to_string(), "costs.csv: train has no feature \"f22\"");
    assert_eq!(unknown.remedy(), Some("did you mean f2?"));
    let absent = of("feature,cost\nf1,1\nf3,1\n");
    assert_eq!(absent.to_string(), "costs.csv: no cost for 2 of the 4 features of train: f2, f4");
    assert!(CostTable::parse_toml("[cost]\nf1 = 1.0\n", String::new()).is_err());
}
