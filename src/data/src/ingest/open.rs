//! Looking into an input: what it is, and how it is to be read.

use super::cut::Cutter;
use super::decode::batch::BatchDecoder;
use super::decode::delimited::DelimitedDecoder;
use super::decode::letor::LetorDecoder;
use super::decode::{Decoder, Lines};
use super::format::{self, Format};
use super::guess::{TableForm, guess};
use super::input::Input;
use super::reader::{IngestOptions, Opened, cut_error, read_error};
use super::roles::{ColumnRole, Roles, unnamed};
use super::table::Table;
use super::unpack::{Packing, unpack};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::sync::Arc;

/// Bytes that are looked at to tell what an input is, however it is cut afterwards.
const SAMPLE_BYTES: usize = 1 << 20;

/// Opens an input and looks at its start.
pub fn open(
    input: &Input,
    options: &IngestOptions,
    notes: &mut Vec<String>,
) -> Result<(Opened, Option<Roles>)> {
    let (packing, mut reader) =
        unpack(input.open()?).map_err(|error| read_error(input, Packing::Plain, error, 0))?;
    if packing == Packing::Parquet || options.format == Some(Format::Parquet) {
        let table = Table::open(input, Some(&mut reader))?;
        let roles = table.roles(&options.roles)?;
        check_width(&roles, options, input)?;
        if !roles.has(&ColumnRole::Query) {
            return Err(unnamed(&table.names, "query", &input.name));
        }
        note_index(&roles, &table.names, notes);
        note_categories(&roles, notes);
        let decoder = Arc::new(BatchDecoder { roles: roles.clone(), lenient: options.lenient });
        return Ok((Opened::Table { table: Box::new(table), decoder }, Some(roles)));
    }
    let mut cutter = Cutter::new(reader, SAMPLE_BYTES);
    let start = cutter.next_chunk().map_err(|error| cut_error(input, packing, error))?;
    let Some(start) = start else { return Ok((Opened::Nothing, None)) };
    let text = &start.text;
    let format = options.format.unwrap_or_else(|| Format::of_text(text));
    let (decoder, roles, delimiter): (Arc<dyn Decoder>, _, _) = match format {
        Format::Csv => {
            let (decoder, roles) = delimited(input, text, options, notes)?;
            let delimiter = decoder.delimiter;
            (Arc::new(decoder), Some(roles), Some(delimiter))
        }
        _ => (Arc::new(letor(input, text, options)?), None, None),
    };
    cutter.put_back(start);
    cutter.set_quoted(delimiter);
    cutter.set_target(options.chunk_bytes);
    Ok((Opened::Text { cutter, packing, decoder, format }, roles))
}

fn letor(input: &Input, text: &[u8], options: &IngestOptions) -> Result<LetorDecoder> {
    let given = options.feature_names.as_ref().map(|names| names.len() as u32);
    Ok(LetorDecoder {
        index_base: options.index_base,
        max_features: given.unwrap_or(options.max_features).min(options.max_features),
        lenient: options.lenient,
        query_in_line: format::names_query(text) || input.beside(".query")?.is_none(),
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
        None => match description_beside(input)? {
            Some(location) => {
                let bytes = location.read_all()?.unwrap_or_default();
                Some((String::from_utf8_lossy(&bytes).into_owned(), location.to_string()))
            }
            None => None,
        },
    };
    // A file that a description goes with has no line of names; CatBoost's convention.
    let header = options.header && beside.is_none();
    let mut roles = match &beside {
        Some((text, described_by)) => Roles::by_description(text, names.len(), &input.name, described_by)?,
        None if header => Roles::by_names(&names, &options.roles, &input.name)?,
        None => {
            let numbers: Vec<String> = (0..names.len()).map(|place| place.to_string()).collect();
            Roles::by_names(&numbers, &options.roles, &input.name)?
        }
    };
    check_width(&roles, options, input)?;
    if !roles.has(&ColumnRole::Query) && input.beside(".query")?.is_none() {
        return Err(unnamed(&names, "query", &input.name));
    }
    let table = TableForm { delimiter, header, file: &input.name };
    // A description says itself what is a number and what a word.
    let described = beside.is_some().then(|| roles.clone());
    let guess = guess(lines, &table, &mut roles, options.decimal_comma)?;
    let guessed_words = if described.is_none() { guess.words } else { Vec::new() };
    let roles = described.unwrap_or(roles);
    if !guess.comma_columns.is_empty() {
        notes.push(format!(
            "numbers in {} have decimal commas: 0,5 is read as 0.5",
            guess.comma_columns.join(", ")
        ));
    }
    note_index(&roles, &names, notes);
    note_categories(&roles, notes);
    let decoder = DelimitedDecoder {
        roles: roles.clone(),
        delimiter,
        header,
        guessed_words,
        decimal_comma: guess.decimal_comma,
        lenient: options.lenient,
    };
    Ok((decoder, roles))
}

/// `train.cd` for `train`, `train.tsv`, `train.tsv.gz`; or the whole name with `.cd` added.
pub fn description_beside(input: &Input) -> Result<Option<Location>> {
    if let Some(beside) = input.beside(".cd")? {
        return Ok(Some(beside));
    }
    for ending in [".tsv", ".csv", ".txt"] {
        for packing in ["", ".gz", ".bz2", ".xz", ".zst"] {
            let ending = format!("{ending}{packing}");
            if input.name.ends_with(&ending)
                && let Some(beside) = input.renamed(&ending, ".cd")?
            {
                return Ok(Some(beside));
            }
        }
    }
    Ok(None)
}

fn check_width(roles: &Roles, options: &IngestOptions, input: &Input) -> Result<()> {
    if roles.features.len() <= options.max_features as usize {
        return Ok(());
    }
    Err(Error::place(
        &input.name,
        format_args!(
            "it has {} features, more than --max-features {}",
            roles.features.len(),
            options.max_features
        ),
        "raise --max-features",
    ))
}

fn note_index(roles: &Roles, names: &[String], notes: &mut Vec<String>) {
    let index: Vec<&str> = roles.index.iter().map(|place| names[*place].as_str()).collect();
    if !index.is_empty() {
        let names = index.join(", ");
        notes.push(format!("left out: {names}, the index of a data frame (--keep-columns keeps it)"));
    }
}

fn note_categories(roles: &Roles, notes: &mut Vec<String>) {
    let names: Vec<&str> = roles
        .columns
        .iter()
        .filter_map(|role| match role {
            ColumnRole::Category(feature) => Some(roles.features[*feature as usize].as_str()),
            _ => None,
        })
        .collect();
    if !names.is_empty() {
        notes.push(format!(
            "words in {} are coded 0, 1, 2, ... in order of appearance (the manifest lists them)",
            names.join(", ")
        ));
    }
}
