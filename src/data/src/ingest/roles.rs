//! Which column of a table is what: query, label, document, weight, position, or a feature.

use planetree_base::error::{Error, Result};

/// What a column of an input table holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnRole {
    /// Query ids.
    Query,
    /// Labels.
    Label,
    /// Document ids.
    Document,
    /// Weights.
    Weight,
    /// Positions at which documents were shown.
    Position,
    /// Numbers; the place among the features.
    Feature(u32),
    /// Words, to be coded as numbers; the place among the features.
    Category(u32),
    /// Nothing of interest.
    Ignored,
}

/// What the user said about columns. A column is named, or counted from 0 when the table has no
/// names.
#[derive(Debug, Clone, Default)]
pub struct RoleOptions {
    /// Column of the query ids.
    pub query: Option<String>,
    /// Column of the labels.
    pub label: Option<String>,
    /// Column of the document ids.
    pub document: Option<String>,
    /// Column of the weights.
    pub weight: Option<String>,
    /// Column of the positions.
    pub position: Option<String>,
    /// Columns to leave out.
    pub ignored: Vec<String>,
    /// Columns of words.
    pub categories: Vec<String>,
    /// Columns that hold words in another dataset, whose codes are taken over.
    pub known_categories: Vec<String>,
    /// Columns that the file says are the index of a data frame.
    pub index: Vec<String>,
    /// Columns to keep although they are an index.
    pub kept: Vec<String>,
}

/// What columns are usually called, the likeliest first.
const QUERY: &[&str] =
    &["query_id", "qid", "queryid", "query", "group_id", "groupid", "group", "search_id", "srch_id"];
const LABEL: &[&str] = &[
    "label",
    "relevance",
    "rel",
    "grade",
    "target",
    "relevance_label",
    "judgment",
    "judgement",
    "rating",
    "y",
];
const DOCUMENT: &[&str] = &["doc_id", "docid", "document_id", "doc", "document"];
const WEIGHT: &[&str] = &["weight", "sample_weight"];
const POSITION: &[&str] = &["position"];

/// The roles of a table's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    /// One role a column.
    pub columns: Vec<ColumnRole>,
    /// The names of the features.
    pub features: Vec<String>,
    /// Columns that are left out because they are the index of a data frame.
    pub index: Vec<usize>,
}

impl Roles {
    /// Decides by the options first, then by the usual names. `file` is for messages.
    pub fn by_names(names: &[String], options: &RoleOptions, file: &str) -> Result<Self> {
        let mut columns = vec![None; names.len()];
        let usual: [(&Option<String>, &[&str], ColumnRole, &str); 5] = [
            (&options.query, QUERY, ColumnRole::Query, "query"),
            (&options.label, LABEL, ColumnRole::Label, "label"),
            (&options.document, DOCUMENT, ColumnRole::Document, "doc"),
            (&options.weight, WEIGHT, ColumnRole::Weight, "weight"),
            (&options.position, POSITION, ColumnRole::Position, "position"),
        ];
        for (wanted, _, role, _) in &usual {
            if let Some(wanted) = wanted {
                columns[find(names, wanted, file)?] = Some(role.clone());
            }
        }
        for wanted in &options.ignored {
            columns[find(names, wanted, file)?] = Some(ColumnRole::Ignored);
        }
        let mut categories: Vec<usize> =
            options.categories.iter().map(|name| find(names, name, file)).collect::<Result<_>>()?;
        categories.extend(
            names
                .iter()
                .enumerate()
                .filter(|(_, name)| options.known_categories.contains(name))
                .map(|(place, _)| place),
        );
        for (wanted, spellings, role, option) in usual {
            if wanted.is_some() {
                continue;
            }
            let place = spellings.iter().find_map(|spelling| {
                names.iter().enumerate().position(|(place, name)| {
                    columns[place].is_none()
                        && !categories.contains(&place)
                        && name.eq_ignore_ascii_case(spelling)
                })
            });
            match place {
                Some(place) => columns[place] = Some(role),
                None if option == "label" => return Err(unnamed(names, option, file)),
                None => {}
            }
        }
        let kept: Vec<usize> =
            options.kept.iter().map(|name| find(names, name, file)).collect::<Result<_>>()?;
        let is_index = |place: usize| {
            let is_named = options.index.contains(&names[place]) || is_pandas_index(&names[place]);
            is_named && !kept.contains(&place) && !categories.contains(&place)
        };
        let (mut features, mut index) = (Vec::new(), Vec::new());
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(place, role)| {
                role.unwrap_or_else(|| {
                    if is_index(place) {
                        index.push(place);
                        return ColumnRole::Ignored;
                    }
                    features.push(names[place].clone());
                    let feature = features.len() as u32 - 1;
                    if categories.contains(&place) {
                        ColumnRole::Category(feature)
                    } else {
                        ColumnRole::Feature(feature)
                    }
                })
            })
            .collect();
        let roles = Roles { columns, features, index };
        roles.check_names(file)?;
        Ok(roles)
    }

    /// Reads a CatBoost column description: lines of `index <tab> kind [<tab> name]`.
    pub fn by_description(text: &str, columns: usize, file: &str, described_by: &str) -> Result<Self> {
        let mut roles = vec![None; columns];
        let mut names = vec![None; columns];
        for (line, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
            let fault = |problem: String| {
                Error::place(
                    format_args!("{described_by}:{}", line + 1),
                    problem,
                    "write `column <tab> kind [<tab> name]`, columns counted from 0",
                )
            };
            let mut fields = row.split('\t').map(str::trim);
            let place: usize = match fields.next().map(str::parse) {
                Some(Ok(place)) if place < columns => place,
                Some(Ok(place)) => return Err(fault(format!("column {place} of {columns} in {file}"))),
                _ => return Err(fault(format!("found {row:?}, expected a column's number"))),
            };
            let kind = fields.next().unwrap_or_default();
            names[place] = fields.next().filter(|name| !name.is_empty()).map(str::to_owned);
            roles[place] = match kind {
                "Num" => None,
                "Categ" => Some(ColumnRole::Category(0)),
                "Label" | "Target" => Some(ColumnRole::Label),
                "GroupId" | "QueryId" => Some(ColumnRole::Query),
                "DocId" | "SampleId" => Some(ColumnRole::Document),
                "Weight" => Some(ColumnRole::Weight),
                "Position" => Some(ColumnRole::Position),
                "Auxiliary" | "GroupWeight" | "SubgroupId" | "Baseline" | "Timestamp" => {
                    Some(ColumnRole::Ignored)
                }
                other => return Err(fault(format!("the kind {other:?} is not known"))),
            };
        }
        let mut features = Vec::new();
        let columns = roles
            .into_iter()
            .zip(names)
            .map(|(role, name)| {
                let feature = features.len() as u32;
                let role = match role {
                    None => ColumnRole::Feature(feature),
                    Some(ColumnRole::Category(_)) => ColumnRole::Category(feature),
                    Some(role) => return role,
                };
                features.push(name.unwrap_or_else(|| format!("f{}", feature + 1)));
                role
            })
            .collect();
        let roles = Roles { columns, features, index: Vec::new() };
        if !roles.has(&ColumnRole::Label) {
            return Err(Error::place(described_by, "no column is the Label or Target", "add one"));
        }
        roles.check_names(described_by)?;
        Ok(roles)
    }

    /// What a column is called in messages.
    pub fn name_of(&self, place: usize) -> String {
        match &self.columns[place] {
            ColumnRole::Feature(feature) | ColumnRole::Category(feature) => {
                self.features[*feature as usize].clone()
            }
            ColumnRole::Label => "the label".to_owned(),
            ColumnRole::Weight => "the weight".to_owned(),
            _ => format!("column {}", place + 1),
        }
    }

    /// Whether some column has this role.
    pub fn has(&self, role: &ColumnRole) -> bool {
        self.columns.contains(role)
    }

    /// The columns that are no features, in a fixed order.
    pub fn parts(&self) -> Vec<&ColumnRole> {
        let parts = [
            ColumnRole::Query,
            ColumnRole::Label,
            ColumnRole::Document,
            ColumnRole::Weight,
            ColumnRole::Position,
        ];
        parts.iter().filter_map(|part| self.columns.iter().find(|role| *role == part)).collect()
    }

    /// The first feature that holds words in one table and numbers in the other.
    pub fn first_different_kind(&self, other: &Roles) -> Option<&str> {
        (0..self.features.len() as u32)
            .find(|feature| {
                let category = ColumnRole::Category(*feature);
                self.has(&category) != other.has(&category)
            })
            .map(|feature| self.features[feature as usize].as_str())
    }

    /// Feature names must be told apart, also from the columns every dataset has.
    fn check_names(&self, file: &str) -> Result<()> {
        check_feature_names(&self.features, file)
    }
}

/// What pandas calls an index without a name: `__index_level_0__`.
fn is_pandas_index(name: &str) -> bool {
    let level = name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__"));
    level.is_some_and(|level| !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An error if a name is empty, repeats, or is that of a dataset's own column.
pub fn check_feature_names(names: &[String], file: &str) -> Result<()> {
    const OWN: [&str; 5] = ["query_id", "doc_id", "label", "weight", "position"];
    let mut seen = std::collections::HashSet::new();
    for (place, name) in names.iter().enumerate() {
        let problem = if name.is_empty() {
            format!("feature {} has no name", place + 1)
        } else if OWN.contains(&name.as_str()) {
            format!("the feature name {name:?} is that of a dataset's own column")
        } else if !seen.insert(name) {
            format!("the feature name {name:?} is used twice")
        } else {
            continue;
        };
        let remedy = format!("rename it, or leave it out with --ignore-columns {name:?}");
        return Err(Error::place(file, problem, remedy));
    }
    Ok(())
}

fn find(names: &[String], wanted: &str, file: &str) -> Result<usize> {
    names.iter().position(|name| name == wanted).ok_or_else(|| {
        Error::usage(
            format_args!("{file}: there is no column {wanted:?}"),
            format_args!("the columns are {}", listed(names)),
        )
    })
}

/// The error of a table whose column for a role cannot be told by its name.
pub fn unnamed(names: &[String], role: &str, file: &str) -> Error {
    Error::usage(
        format_args!("{file}: no column is known as the {role}"),
        format_args!("say which with --{role}-column; the columns are {}", listed(names)),
    )
}

fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    let shown = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown}, ... ({} in all)", names.len()) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn usual_names_are_known_in_any_case() {
        let roles = Roles::by_names(&names("GROUP,LABEL,a,b"), &RoleOptions::default(), "t.csv").unwrap();
        assert_eq!(
            roles.columns,
            [ColumnRole::Query, ColumnRole::Label, ColumnRole::Feature(0), ColumnRole::Feature(1)]
        );
        assert_eq!(roles.features, ["a", "b"]);
    }

    #[test]
    fn options_win_over_usual_names() {
        let options = RoleOptions {
            label: Some("clicks".into()),
            ignored: vec!["b".into()],
            categories: vec!["a".into()],
            ..RoleOptions::default()
        };
        let roles = Roles::by_names(&names("qid,a,b,clicks,rel"), &options, "t.csv").unwrap();
        assert_eq!(
            roles.columns,
            [
                ColumnRole::Query,
                ColumnRole::Category(0),
                ColumnRole::Ignored,
                ColumnRole::Label,
                ColumnRole::Feature(1)
            ]
        );
        // A second column that is called `label` would clash with the dataset's own.
        assert!(Roles::by_names(&names("qid,a,b,clicks,label"), &options, "t.csv").is_err());
    }

    #[test]
    fn an_index_is_left_out_unless_it_is_named_or_has_a_role() {
        let columns = names("qid,label,a,place,__index_level_0__");
        let mut options = RoleOptions { index: vec!["place".into(), "qid".into()], ..RoleOptions::default() };
        let roles = Roles::by_names(&columns, &options, "t").unwrap();
        assert_eq!((&roles.features[..], &roles.index[..]), (&["a".to_owned()][..], &[3, 4][..]));
        assert_eq!(roles.columns[0], ColumnRole::Query);
        options.kept = vec!["place".into()];
        options.categories = vec!["__index_level_0__".into()];
        let roles = Roles::by_names(&columns, &options, "t").unwrap();
        assert_eq!(roles.features, ["a", "place", "__index_level_0__"]);
        options.kept = vec!["plaice".into()];
        assert!(Roles::by_names(&columns, &options, "t").is_err());
    }

    #[test]
    fn a_catboost_description_names_the_columns() {
        let roles =
            Roles::by_description("0\tGroupId\n1\tTarget\n3\tCateg\tcolour\n4\tAuxiliary\n", 6, "t", "t.cd")
                .unwrap();
        assert_eq!(roles.features, ["f1", "colour", "f3"]);
        assert_eq!(roles.columns[3], ColumnRole::Category(1));
        let error = Roles::by_description("9\tTarget\n", 6, "t", "t.cd").unwrap_err();
        assert_eq!(error.to_string(), "t.cd:1: column 9 of 6 in t");
    }
}
