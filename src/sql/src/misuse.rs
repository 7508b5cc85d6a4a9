//! Translates what the engine says about calls, operators and groups that do not fit, which names its own types and
//! signatures, into a short problem and a remedy.

/// A mistake in a query.
#[derive(Debug, PartialEq)]
pub(crate) struct Misuse {
    pub problem: String,
    pub remedy: String,
    /// The function whose call is the mistake, if the engine does not say where it is.
    pub function: Option<String>,
}

/// Remedy for two columns of one name.
pub(crate) const RENAME: &str = "name one of them with AS, as in label AS other";

/// How many forms of a call are named.
const FORMS: usize = 5;

/// Recognises a problem of the engine. `written` is the text at its position.
pub(crate) fn misuse(problem: &str, written: Option<&str>) -> Option<Misuse> {
    wrong_arguments(problem)
        .or_else(|| not_grouped(problem, written))
        .or_else(|| wrong_operands(problem))
        .or_else(|| aggregate_in_where(problem))
        .or_else(|| same_names(problem))
}

/// Returns what is not supported, without the engine's syntax tree, and the remedy.
pub(crate) fn not_supported(problem: &str) -> (&str, &'static str) {
    const TREE: [char; 3] = ['{', '(', '['];
    let problem = problem.lines().next().unwrap_or_default();
    let is_tree = problem.contains("Ident {") || problem.contains(" { ");
    let end = if is_tree { problem.find(TREE) } else { None };
    let problem = problem[..end.unwrap_or(problem.len())].trim_end();
    let remedy = if problem.starts_with("Unsupported JOIN operator") {
        "write JOIN, LEFT JOIN, SEMI JOIN, ANTI JOIN or a subquery"
    } else if problem.starts_with("ORDER BY ALL") {
        "write the columns of the result by their numbers: ORDER BY 1, 2"
    } else if problem.starts_with("Operator DIV") {
        "write floor(a / b), or a / b for whole numbers"
    } else {
        "rewrite the query"
    };
    (problem, remedy)
}

fn wrong_arguments(problem: &str) -> Option<Misuse> {
    let call = between(problem, "No function matches the given name and argument types '", "'. You might")?;
    let (name, given) = call.strip_suffix(')')?.split_once('(')?;
    let given = words_of(given);
    let (_, candidates) = problem.split_once("Candidate functions:\n").unwrap_or_default();
    let mut forms: Vec<String> = Vec::new();
    for candidate in candidates.lines() {
        let Some(types) = candidate.trim().strip_prefix(name).and_then(inside_parentheses) else { continue };
        let form = format!("{name}({})", words_of(types).join(", "));
        if types != "UserDefined" && !forms.contains(&form) {
            forms.push(form);
        }
    }
    let numbers = [format!("{name}(number"), format!("{name}(whole number")];
    let takes_number = forms.iter().any(|form| numbers.iter().any(|start| form.starts_with(start)));
    let mut remedy = match &forms[..] {
        [] => format!("SHOW FUNCTIONS LIKE '{name}' lists the arguments"),
        forms if forms.len() > FORMS => format!("call {}, ...", forms[..FORMS].join(", ")),
        [most @ .., last] if !most.is_empty() => format!("call {} or {last}", most.join(", ")),
        forms => format!("call {}", forms.concat()),
    };
    if takes_number && given.first().is_some_and(|word| word == "text") {
        remedy.push_str("; CAST(x AS DOUBLE) turns text into a number");
    }
    let problem = format!("wrong arguments: {name}({})", given.join(", "));
    Some(Misuse { problem, remedy, function: Some(name.to_owned()) })
}

fn not_grouped(problem: &str, written: Option<&str>) -> Option<Misuse> {
    let column = between(problem, "column \"", "\" must appear in the GROUP BY clause")?;
    // The name of a table may contain dots.
    let name = column.rsplit('.').next().unwrap_or(column);
    let name = written.filter(|written| written.trim_end_matches('"').ends_with(name)).unwrap_or(name);
    Some(Misuse {
        problem: format!("{name} is neither in GROUP BY nor aggregated"),
        remedy: format!("add {name} to GROUP BY, or aggregate it, as in max({name})"),
        function: None,
    })
}

fn wrong_operands(problem: &str) -> Option<Misuse> {
    const KINDS: [&str; 3] = [
        "Cannot coerce arithmetic expression ",
        "Cannot infer common argument type for comparison operation ",
        "Cannot infer common argument type for logical boolean operation ",
    ];
    let operation = KINDS.iter().find_map(|kind| problem.split_once(kind))?.1;
    let operation = operation.lines().next().unwrap_or_default().trim_end_matches(" to valid types");
    let parts = parts_of(operation, ' ');
    let [left, middle @ .., right] = &parts[..] else { return None };
    let (left, right) = (type_word(left), type_word(right));
    Some(Misuse {
        problem: format!("types that do not fit: {left} {} {right}", middle.join(" ")),
        remedy: "convert a value, as in CAST(x AS DOUBLE)".to_owned(),
        function: None,
    })
}

fn aggregate_in_where(problem: &str) -> Option<Misuse> {
    problem.starts_with("Aggregate functions are not allowed in the WHERE clause").then(|| Misuse {
        problem: "aggregate functions are not allowed in WHERE".to_owned(),
        remedy: "write the condition after GROUP BY, as HAVING".to_owned(),
        function: None,
    })
}

fn same_names(problem: &str) -> Option<Misuse> {
    if !problem.contains(" require unique expression names but ") {
        return None;
    }
    let expression = between(problem, "the expression \"", "\" at position ")?;
    let name = match expression.rsplit_once(" AS ") {
        Some((_, name)) => name,
        // A column, with its table.
        None if !expression.contains('(') => expression.rsplit('.').next().unwrap_or(expression),
        None => expression,
    };
    Some(Misuse {
        problem: format!("two columns are called {name}"),
        remedy: RENAME.to_owned(),
        function: None,
    })
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.split_once(before)?.1.split_once(after).map(|(found, _)| found)
}

fn inside_parentheses(text: &str) -> Option<&str> {
    text.strip_prefix('(')?.strip_suffix(')')
}

/// Returns a word for every argument of a list of the engine's types, such as `Utf8, Float64/Float32`.
fn words_of(types: &str) -> Vec<String> {
    let mut words = Vec::new();
    for argument in parts_of(types, ',') {
        // The name of a parameter may precede its type.
        let kind = match argument.split_once(": ") {
            Some((name, kind)) if !name.contains(['(', '"']) => kind,
            _ => argument,
        };
        if kind == "NullAry()" {
            continue;
        }
        let mut alternatives: Vec<&str> = parts_of(kind, '/').into_iter().map(type_word).collect();
        alternatives.dedup();
        // Such as String(2): two strings.
        let classes = ["String", "Numeric", "Comparable"];
        let count = classes.iter().find_map(|class| inside_parentheses(kind.strip_prefix(class)?));
        let count = count.and_then(|count| count.parse().ok()).unwrap_or(1);
        words.extend(vec![alternatives.join(" or "); count]);
    }
    words
}

/// Splits a text at a separator outside of parentheses, and omits empty parts.
fn parts_of(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_boundary = |letter: char| {
        depth += i32::from("([{".contains(letter)) - i32::from(")]}".contains(letter));
        depth == 0 && letter == separator
    };
    text.split(is_boundary).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Returns a word for a type of the engine.
fn type_word(kind: &str) -> &str {
    let base = kind.split(['(', '[']).next().unwrap_or(kind);
    match base {
        "Utf8" | "LargeUtf8" | "Utf8View" | "String" => "text",
        "Float16" | "Float32" | "Float64" | "Float" | "Numeric" => "number",
        "Int8" | "Int16" | "Int32" | "Int64" | "UInt8" | "UInt16" | "UInt32" | "UInt64" | "Integer"
        | "index" => "whole number",
        "Decimal" | "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256" => "decimal",
        "Boolean" => "boolean",
        "Date" | "Date32" | "Date64" => "date",
        "Time" | "Time32" | "Time64" => "time of day",
        "Timestamp" => "timestamp",
        "Interval" => "interval",
        "Duration" => "duration",
        "Binary" | "LargeBinary" | "BinaryView" | "FixedSizeBinary" => "binary",
        "List" | "LargeList" | "FixedSizeList" | "ListView" | "array" | "recursive_array" => "list",
        "Any" | "Comparable" | "element" => "value",
        "Null" => "NULL",
        ".." => "...",
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(given: &str, candidates: &[&str]) -> Misuse {
        let candidates: Vec<String> = candidates.iter().map(|form| format!("\t{form}")).collect();
        let problem = format!(
            "Internal error: no signature.\nThis is a bug. No function matches the given name and argument types '{given}'. \
             You might need to add explicit type casts.\n\tCandidate functions:\n{}",
            candidates.join("\n")
        );
        misuse(&problem, None).unwrap()
    }

    #[test]
    fn wrong_arguments_are_answered_with_those_that_fit() {
        for (given, candidates, problem, remedy) in [
            (
                "sum(Utf8)",
                &["sum(Decimal)", "sum(UInt64)", "sum(Int64)", "sum(Float64)", "sum(Interval)"][..],
                "wrong arguments: sum(text)",
                "call sum(decimal), sum(whole number), sum(number) or sum(interval); CAST(x AS DOUBLE) turns text into a number",
            ),
            (
                "string_agg(Utf8)",
                &["string_agg(expression: LargeUtf8, delimiter: Utf8)", "string_agg(Utf8, Utf8View)"],
                "wrong arguments: string_agg(text)",
                "call string_agg(text, text)",
            ),
            (
                "date_part(Int64)",
                &["date_part(String, Timestamp(ns))", "date_part(String, Date)"],
                "wrong arguments: date_part(whole number)",
                "call date_part(text, timestamp) or date_part(text, date)",
            ),
            (
                "sqrt(Boolean)",
                &["sqrt(Float64/Float32)"],
                "wrong arguments: sqrt(boolean)",
                "call sqrt(number)",
            ),
            (
                "f(List(Field { name: \"a\", data_type: Int64 }), Null)",
                &["f(String(2))", "f(NullAry())", "f(Any, .., Any)"],
                "wrong arguments: f(list, NULL)",
                "call f(text, text), f() or f(value, ..., value)",
            ),
            (
                "g()",
                &["g(UserDefined)"],
                "wrong arguments: g()",
                "SHOW FUNCTIONS LIKE 'g' lists the arguments",
            ),
            (
                "h(Utf8)",
                &["h(a)", "h(b)", "h(c)", "h(d)", "h(e)", "h(f)"],
                "wrong arguments: h(text)",
                "call h(a), h(b), h(c), h(d), h(e), ...",
            ),
        ] {
            let found = call(given, candidates);
            assert_eq!((found.problem.as_str(), found.remedy.as_str()), (problem, remedy));
            assert_eq!(found.function.as_deref(), given.split('(').next());
        }
    }

    #[test]
    fn columns_outside_of_groups_are_named_as_they_are_written() {
        let problem = "Column in SELECT must be in GROUP BY or an aggregate function: While expanding wildcard, column \
                       \"p.parquet.query_id\" must appear in the GROUP BY clause or must be part of an aggregate function";
        for (written, name) in
            [(Some("p.query_id"), "p.query_id"), (None, "query_id"), (Some("SELECT"), "query_id")]
        {
            let found = misuse(problem, written).unwrap();
            assert_eq!(found.problem, format!("{name} is neither in GROUP BY nor aggregated"));
            assert_eq!(found.remedy, format!("add {name} to GROUP BY, or aggregate it, as in max({name})"));
        }
    }

    #[test]
    fn operands_are_named_by_their_types() {
        for (problem, expected) in [
            (
                "Cannot coerce arithmetic expression Utf8 + Int64 to valid types",
                "types that do not fit: text + whole number",
            ),
            (
                "Cannot infer common argument type for logical boolean operation Timestamp(ns, \"UTC\") AND Boolean",
                "types that do not fit: timestamp AND boolean",
            ),
        ] {
            assert_eq!(misuse(problem, None).unwrap().problem, expected);
        }
        assert_eq!(misuse("UNION queries have different number of columns", None), None);
    }

    #[test]
    fn columns_of_one_name_are_named() {
        for (first, second, name) in [
            ("train.label", "train.label", "label"),
            ("lm.p.parquet.label", "lm.p.parquet.label", "label"),
            ("Int64(1) AS a", "Int64(2) AS a", "a"),
            ("count(*)", "count(*)", "count(*)"),
        ] {
            let problem = format!(
                "Projections require unique expression names but the expression \"{first}\" at position 0 and \"{second}\" \
                 at position 1 have the same name. Consider aliasing (\"AS\") one of them."
            );
            assert_eq!(misuse(&problem, None).unwrap().problem, format!("two columns are called {name}"));
        }
    }

    #[test]
    fn syntax_trees_are_left_out() {
        for (problem, expected) in [
            (
                "Unsupported JOIN operator Foo(Using([ObjectName([Identifier(Ident { value: \"a\" })])]))",
                "Unsupported JOIN operator Foo",
            ),
            ("Unsupported ast node Foo { table: Table { name: 1 } } in x", "Unsupported ast node Foo"),
            ("ORDER BY ALL (of columns)", "ORDER BY ALL (of columns)"),
        ] {
            assert_eq!(not_supported(problem).0, expected);
        }
    }
}
