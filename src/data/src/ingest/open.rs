//! Opens an input, detects its format and chooses the decoder.

use super::batches::BatchSource;
use super::chunk::LineChunker;
use super::decode::batch::BatchDecoder;
use super::decode::delimited::{DelimitedDecoder, for_each_record};
use super::decode::letor::LetorDecoder;
use super::decode::{Decoder, Lines};
use super::decompress::{InputCompression, decompress};
use super::format::{self, InputFormat};
use super::guess::{TableDialect, guess};
use super::input::Input;
use super::input_error::{chunk_error, read_error};
use super::parquet_input::ParquetInput;
use super::reader::{IngestOptions, OpenInput};
use super::roles::{ColumnRole, Roles, missing_role};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::sync::Arc;

/// Number of bytes at the start of an input that are examined to detect its format.
const SAMPLE_BYTES: usize = 1 << 20;

/// Opens an input and detects its format. Returns the opened input, and the roles of the columns if it is a table.
/// `notes` receives notes for the user on how the input was interpreted.
pub(super) fn open(
    input: &Input,
    options: &IngestOptions,
    notes: &mut Vec<String>,
) -> Result<(OpenInput, Option<Roles>)> {
    let (compression, mut reader) =
        decompress(input.open()?).map_err(|error| read_error(input, InputCompression::Plain, error, 0))?;
    if compression == InputCompression::Parquet || options.format == Some(InputFormat::Parquet) {
        let table = ParquetInput::open(input, Some(&mut reader))?;
        table.refuse_own_table()?;
        let (roles, names) = (table.roles(&options.roles)?, table.names());
        table.check_pages(&roles, options.memory_limit)?;
        let opened = opened_table(Box::new(table), &roles, &names, input, options, notes)?;
        return Ok((opened, Some(roles)));
    }
    let mut chunker = LineChunker::new(reader, SAMPLE_BYTES);
    let start = chunker.next_chunk().map_err(|error| chunk_error(input, compression, error))?;
    let Some(start) = start else { return Ok((OpenInput::Empty, None)) };
    let text = &start.text;
    let format = options.format.unwrap_or_else(|| InputFormat::of_text(text));
    let (decoder, roles, delimiter): (Arc<dyn Decoder>, _, _) = match format {
        InputFormat::Csv => {
            let (decoder, roles) = delimited(input, text, options, notes)?;
            let delimiter = decoder.delimiter;
            (Arc::new(decoder), Some(roles), Some(delimiter))
        }
        _ => {
            refuse_options_of_tables(input, options, notes)?;
            (Arc::new(letor(input, text, options)?), None, None)
        }
    };
    chunker.put_back(start);
    chunker.set_quoted(delimiter);
    chunker.set_target(options.chunk_bytes);
    Ok((OpenInput::Text { chunker, compression, decoder, format }, roles))
}

/// Checks the columns of a table of record batches, and returns the opened table.
pub(super) fn opened_table(
    table: Box<dyn BatchSource>,
    roles: &Roles,
    names: &[String],
    input: &Input,
    options: &IngestOptions,
    notes: &mut Vec<String>,
) -> Result<OpenInput> {
    check_width(roles, options, &input.name)?;
    if !roles.has(&ColumnRole::Query) {
        return Err(missing_role(names, "query", &input.name));
    }
    note_label(roles, names, options, notes);
    // The weights of a dataset were noted when it was written.
    if input.part.is_none() {
        note_weights(roles, names, options, notes);
    }
    note_renamed(roles, names, notes);
    note_index_columns(roles, names, notes);
    note_categories(roles, options, notes);
    let decoder =
        Arc::new(BatchDecoder { roles: roles.clone(), names: names.to_vec(), lenient: options.lenient });
    Ok(OpenInput::Table { table, decoder })
}

/// Returns the options that name columns of a table, and whether each of them is given.
fn column_options(options: &IngestOptions) -> [(&'static str, bool); 7] {
    let roles = &options.roles;
    [
        ("--query-column", roles.query.is_some()),
        ("--label-column", roles.label.is_some()),
        ("--doc-column", roles.document.is_some()),
        ("--weight-column", roles.weight.is_some()),
        ("--position-column", roles.position.is_some()),
        ("--categorical", !roles.categories.is_empty()),
        ("--keep-columns", !roles.kept.is_empty()),
    ]
}

/// Fails if options for tables are given: LETOR text has no columns by name. Options for the training data are noted if
/// the text is for validation.
fn refuse_options_of_tables(input: &Input, options: &IngestOptions, notes: &mut Vec<String>) -> Result<()> {
    let of_tables = [
        ("--column-description", options.description.is_some()),
        ("--delimiter", options.delimiter.is_some()),
        ("--decimal-comma", options.decimal_comma),
        ("--no-header", !options.header),
    ];
    let mut given = column_options(options).into_iter().chain(of_tables).filter(|(_, is_given)| *is_given);
    let Some((option, _)) = given.next() else { return Ok(()) };
    if options.roles.is_partial {
        notes.push(format!(
            "{}: the labels and queries are those of the text; {option} does not apply",
            input.name
        ));
        return Ok(());
    }
    Err(Error::usage(
        format_args!("{}: {option} does not apply to LETOR text, which has no columns by name", input.name),
        "remove the option; if the file is a table, pass --format csv",
    ))
}

/// Notes that a column description next to a table is used. Fails if options name columns, because the description
/// decides; for validation, this is noted.
fn check_description(
    input: &Input,
    options: &IngestOptions,
    described_by: &str,
    notes: &mut Vec<String>,
) -> Result<()> {
    let is_beside = options.description.is_none();
    if is_beside {
        notes.push(format!(
            "the columns are those of {described_by}, which is next to the data; such a table has no header line"
        ));
    }
    let Some((option, _)) = column_options(options).into_iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };
    if options.roles.is_partial {
        notes.push(format!(
            "{}: the columns are those of {described_by}; {option} does not apply",
            input.name
        ));
        return Ok(());
    }
    let problem = format!("{}: {described_by} describes the columns, so {option} does not apply", input.name);
    if is_beside {
        return Err(Error::usage(
            problem,
            format_args!("remove the option, or move or rename {described_by}, which is next to the data"),
        ));
    }
    Err(Error::usage(problem, "remove one of the options"))
}

fn letor(input: &Input, text: &[u8], options: &IngestOptions) -> Result<LetorDecoder> {
    let given = options.feature_names.as_ref().map(|names| names.len() as u32);
    let unlabelled = format::lacks_labels(text);
    Ok(LetorDecoder {
        index_base: options.index_base,
        max_features: given.unwrap_or(options.max_features).min(options.max_features),
        lenient: options.lenient,
        query_in_line: format::has_query_id(text) || unlabelled || input.sibling(".query")?.is_none(),
        unlabelled,
    })
}

fn delimited(
    input: &Input,
    text: &[u8],
    options: &IngestOptions,
    notes: &mut Vec<String>,
) -> Result<(DelimitedDecoder, Roles)> {
    let lines = Lines { text, first_line: 1 };
    let delimiter =
        options.delimiter.unwrap_or_else(|| format::delimiter_of_text(text, options.decimal_comma));
    let names = format::first_record(lines, delimiter);
    let beside = match &options.description {
        Some((text, name)) => Some((text.clone(), name.clone())),
        None => match sibling_description(input)? {
            Some(location) => {
                let bytes = location.read_all()?.unwrap_or_default();
                Some((String::from_utf8_lossy(&bytes).into_owned(), location.to_string()))
            }
            None => None,
        },
    };
    if let Some((_, described_by)) = &beside {
        check_description(input, options, described_by, notes)?;
    }
    // By CatBoost's convention, a file that comes with a separate column description has no header line.
    let header = options.header && beside.is_none();
    let is_headless = header && names.iter().all(|name| name.trim().parse::<f64>().is_ok());
    let as_headless = |error: Error| if is_headless { without_header(error) } else { error };
    let mut roles = match &beside {
        Some((text, described_by)) => Roles::by_description(text, names.len(), &input.name, described_by)?
            .with_chosen_features(&options.roles, &input.name)?,
        None if header => {
            let mut chosen = options.roles.clone();
            if has_unnamed_index(lines, delimiter, &names) {
                chosen.index.push(String::new());
            }
            Roles::by_names(&names, &chosen, &input.name).map_err(as_headless)?
        }
        None => {
            let numbers: Vec<String> = (0..names.len()).map(|place| place.to_string()).collect();
            Roles::by_names(&numbers, &options.roles, &input.name)?
        }
    };
    check_width(&roles, options, &input.name)?;
    if !roles.has(&ColumnRole::Query) && input.sibling(".query")?.is_none() {
        return Err(as_headless(missing_role(&names, "query", &input.name)));
    }
    let table = TableDialect { delimiter, header, file: &input.name };
    // If there is a column description, it states which columns are categorical, and the guess is not used for this
    // purpose.
    let described = beside.is_some().then(|| roles.clone());
    let guess = guess(lines, &table, &mut roles, options.decimal_comma)?;
    let guessed_categorical = if described.is_none() { guess.categorical } else { Vec::new() };
    let roles = described.unwrap_or(roles);
    if !guess.comma_columns.is_empty() {
        notes.push(format!(
            "numbers in {} have decimal commas: 0,5 is read as 0.5",
            guess.comma_columns.join(", ")
        ));
    }
    // Otherwise, the names are not those of the columns.
    if header {
        note_label(&roles, &names, options, notes);
        note_weights(&roles, &names, options, notes);
        note_renamed(&roles, &names, notes);
        note_index_columns(&roles, &names, notes);
    }
    note_categories(&roles, options, notes);
    let decoder = DelimitedDecoder {
        roles: roles.clone(),
        delimiter,
        header,
        guessed_categorical,
        decimal_comma: guess.decimal_comma,
        lenient: options.lenient,
    };
    if let Some((_, described_by)) = &beside
        && let Some(fault) = decoder.fault_of_first_record(lines)
    {
        return Err(fault.in_file(&input.name).map_remedy(|remedy| {
            format!(
                "{described_by} describes the columns, so the first line is data: if it has the names of columns, remove \
                 it, or move {described_by} away; otherwise, {remedy}"
            )
        }));
    }
    Ok((decoder, roles))
}

/// Returns the location of the column description next to an input, if it exists. For `train.tsv.gz`, this is
/// `train.tsv.gz.cd`, `train.tsv.cd` or `train.cd`.
pub fn sibling_description(input: &Input) -> Result<Option<Location>> {
    if let Some(beside) = input.sibling(".cd")? {
        return Ok(Some(beside));
    }
    for ending in [".tsv", ".csv", ".txt"] {
        for compression in ["", ".gz", ".bz2", ".xz", ".zst"] {
            let ending = format!("{ending}{compression}");
            if input.name.ends_with(&ending)
                && let Some(beside) = input.renamed(&ending, ".cd")?
            {
                return Ok(Some(beside));
            }
        }
    }
    Ok(None)
}

/// Checks whether the first column is the index of a data frame, as pandas writes it: the only column without a name,
/// whose values are 0, 1, 2, ... in the first lines.
fn has_unnamed_index(lines: Lines<'_>, delimiter: u8, names: &[String]) -> bool {
    if names.iter().position(String::is_empty) != Some(0) || names[1..].iter().any(String::is_empty) {
        return false;
    }
    let (mut record_number, mut counts) = (0u64, true);
    let read = for_each_record(lines, delimiter, |record| {
        if record_number > 0 {
            counts &= record.field(0) == (record_number - 1).to_string().as_bytes();
        }
        record_number += 1;
        Ok(())
    });
    read.is_ok() && counts && record_number > 1
}

fn check_width(roles: &Roles, options: &IngestOptions, file: &str) -> Result<()> {
    if roles.features.len() <= options.max_features as usize {
        return Ok(());
    }
    Err(Error::place(
        file,
        format_args!("{} features, more than --max-features {}", roles.features.len(), options.max_features),
        "raise --max-features",
    ))
}

/// Says that a table whose first line has only numbers seems to have no header.
fn without_header(error: Error) -> Error {
    error.map_remedy(|_| {
        "the first line has only numbers, so the file seems to have no header: convert it with --no-header, which names the \
         columns 0, 1, 2, ..., and name those of queries and labels, such as --query-column 0 --label-column 1"
            .to_owned()
    })
}

/// Notes a label that was found by a name that a feature may have, too.
fn note_label(roles: &Roles, names: &[String], options: &IngestOptions, notes: &mut Vec<String>) {
    let label = roles.columns.iter().position(|role| *role == ColumnRole::Label);
    let name = label.and_then(|place| names.get(place)).filter(|name| name.eq_ignore_ascii_case("y"));
    if let Some(name) = name.filter(|_| options.roles.label.is_none()) {
        notes.push(format!("the column {name} is read as the label (--label-column chooses another)"));
    }
}

/// Notes weights and positions that were found by their names, which features may have, too.
fn note_weights(roles: &Roles, names: &[String], options: &IngestOptions, notes: &mut Vec<String>) {
    for (role, chosen, content) in [
        (ColumnRole::Weight, &options.roles.weight, "row weights"),
        (ColumnRole::Position, &options.roles.position, "positions at which documents were shown"),
    ] {
        let place = roles.columns.iter().position(|column| *column == role);
        let name = place.filter(|_| chosen.is_none()).and_then(|place| names.get(place));
        if let Some(name) = name {
            notes.push(format!(
                "column {name} is used as {content}; pass --ignore-columns {name} to leave it out, or list it in \
                 --feature-columns"
            ));
        }
    }
}

/// Notes features whose columns have names that a dataset has for other columns.
fn note_renamed(roles: &Roles, names: &[String], notes: &mut Vec<String>) {
    for (role, name) in roles.columns.iter().zip(names) {
        let (ColumnRole::Feature(feature) | ColumnRole::Category(feature)) = role else { continue };
        let renamed = &roles.features[*feature as usize];
        if renamed != name {
            notes.push(format!("column {name} is the feature {renamed}: {name} is not a name for features"));
        }
    }
}

fn note_index_columns(roles: &Roles, names: &[String], notes: &mut Vec<String>) {
    let index: Vec<&str> = roles.index.iter().map(|place| names[*place].as_str()).collect();
    if index.contains(&"") {
        notes.push("skipping the first column, which has no name: index of a data frame".to_owned());
    } else if !index.is_empty() {
        let names = index.join(", ");
        notes.push(format!("skipping {names}: index of a data frame (--keep-columns keeps it)"));
    }
}

fn note_categories(roles: &Roles, options: &IngestOptions, notes: &mut Vec<String>) {
    let names: Vec<&str> = roles
        .columns
        .iter()
        .filter_map(|role| match role {
            ColumnRole::Category(feature) => Some(roles.features[*feature as usize].as_str()),
            _ => None,
        })
        .collect();
    let is_known = |name: &&str| options.roles.known_categories.iter().any(|known| known == name);
    let (known, new): (Vec<&str>, Vec<&str>) = names.into_iter().partition(is_known);
    if !new.is_empty() {
        notes.push(format!(
            "{} treated as categorical: values are coded 0, 1, 2, ... in order of appearance (the manifest lists them)",
            new.join(", ")
        ));
    }
    if !known.is_empty() {
        notes.push(format!(
            "{} coded as in the dataset of --categories-from; values that it does not have get the next codes",
            known.join(", ")
        ));
    }
}
