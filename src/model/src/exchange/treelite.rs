//! Treelite's byte stream of version 4, which `treelite.Model.deserialize` and TL2cgen read.
//!
//! A stream is a sequence of numbers, strings and arrays in the order of the machine (little-endian here); an array is its
//! length in 64 bits and its elements. Splits test `x <= t`. Scores are added up in the type of the input.

use super::portable::{PortableTrees, single};
use super::verify::served::{Rules, ServedModel, ServedNode, ServedSplit, ServedTrees, Sum, as_is, at_most};
use super::{ExportOptions, ExportedModel, onnx};
use crate::model::{Model, ModelFeature};

/// The version of the stream.
const VERSION: [i32; 3] = [4, 0, 0];
/// Types of thresholds and leaves.
const FLOAT32: u8 = 2;
const FLOAT64: u8 = 3;
/// A model with one score per row, without transformation.
const REGRESSOR: u8 = 1;
/// Types of nodes.
const LEAF: u8 = 0;
const NUMERICAL: u8 = 1;
/// Tests.
const NO_TEST: u8 = 0;
const AT_MOST: u8 = 3;
/// Start of the attributes, which identify files written by planetree.
const ATTRIBUTES: &str = "{\"planetree\":\"";

/// Returns whether a file was written by [`export`].
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    let start: Vec<u8> = VERSION.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.starts_with(&start)
        // Lists with a number per tree come before the attributes.
        && memchr::memmem::find(bytes, ATTRIBUTES.as_bytes()).is_some()
}

/// Returns the kind of model in a file.
pub(super) fn kind(bytes: &[u8]) -> &'static str {
    if bytes.get(12) == Some(&FLOAT64) { onnx::DOUBLE } else { onnx::FLOAT }
}

/// A stream that is being written.
#[derive(Default)]
struct TreeliteStream(Vec<u8>);

impl TreeliteStream {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn int(&mut self, value: i32) {
        self.bytes(&value.to_le_bytes());
    }

    fn array<const N: usize>(&mut self, values: impl ExactSizeIterator<Item = [u8; N]>) {
        self.bytes(&(values.len() as u64).to_le_bytes());
        values.for_each(|value| self.bytes(&value));
    }

    fn text(&mut self, text: &str) {
        self.array(text.bytes().map(|byte| [byte]));
    }

    fn numbers(&mut self, values: impl ExactSizeIterator<Item = f64>, is_double: bool) {
        match is_double {
            true => self.array(values.map(f64::to_le_bytes)),
            false => self.array(values.map(|value| single(value).to_le_bytes())),
        }
    }
}

/// Writes a model.
pub(super) fn export(model: &Model, options: &ExportOptions) -> ExportedModel {
    let portable = PortableTrees::of(model, "Treelite");
    let is_double = options.kind == onnx::DOUBLE;
    let mut stream = TreeliteStream::default();
    VERSION.iter().for_each(|number| stream.int(*number));
    let element = if is_double { FLOAT64 } else { FLOAT32 };
    stream.bytes(&[element, element]);
    let count = portable.trees.len();
    stream.bytes(&(count as u64).to_le_bytes());
    stream.int(model.features.len() as i32);
    // Treelite divides by the number of trees, also by 0.
    stream.bytes(&[REGRESSOR, u8::from(portable.is_mean && count > 0)]);
    stream.int(1);
    stream.array([1i32.to_le_bytes()].into_iter());
    stream.array([1i32.to_le_bytes(), 1i32.to_le_bytes()].into_iter());
    stream.array(vec![0i32.to_le_bytes(); count].into_iter());
    stream.array(vec![0i32.to_le_bytes(); count].into_iter());
    stream.text("identity");
    stream.bytes(&1f32.to_le_bytes());
    stream.bytes(&1f32.to_le_bytes());
    stream.array([portable.base_score.to_le_bytes()].into_iter());
    stream.text(&format!("{ATTRIBUTES}{}\"}}", env!("CARGO_PKG_VERSION")));
    stream.int(0);
    for nodes in &portable.trees {
        let splits = || nodes.iter().map(|node| node.split.as_ref());
        let child = |child: Option<usize>| child.map_or(-1i32, |child| child as i32).to_le_bytes();
        stream.int(nodes.len() as i32);
        stream.bytes(&[0]);
        stream.array(splits().map(|split| [if split.is_some() { NUMERICAL } else { LEAF }]));
        stream.array(splits().map(|split| child(split.map(|split| split.left))));
        stream.array(splits().map(|split| child(split.map(|split| split.right))));
        stream.array(splits().map(|split| split.map_or(-1i32, |split| split.feature as i32).to_le_bytes()));
        stream.array(splits().map(|split| [u8::from(split.is_some_and(|split| split.missing_left))]));
        stream
            .numbers(nodes.iter().map(|node| if node.split.is_some() { 0.0 } else { node.value }), is_double);
        stream
            .numbers(splits().map(|split| split.map_or(0.0, |split| f64::from(split.threshold))), is_double);
        stream.array(splits().map(|split| [if split.is_some() { AT_MOST } else { NO_TEST }]));
        stream.array(nodes.iter().map(|_| [0]));
        // No vectors as leaves, and no categories: the lists are empty, and so is the range of every node.
        let none = || vec![0u64.to_le_bytes(); nodes.len()].into_iter();
        stream.numbers([].into_iter(), is_double);
        stream.array(none());
        stream.array(none());
        stream.array(std::iter::empty::<[u8; 4]>());
        stream.array(none());
        stream.array(none());
        let covers = || nodes.iter().map(|node| node.cover);
        stream.array(covers().map(|cover| (cover.max(0.0).round() as u64).to_le_bytes()));
        stream.array(covers().map(|cover| [u8::from(cover > 0.0)]));
        stream.array(covers().map(f64::to_le_bytes));
        stream.array(covers().map(|cover| [u8::from(cover > 0.0)]));
        stream.array(splits().map(|split| split.map_or(0.0, |split| split.gain).to_le_bytes()));
        stream.array(splits().map(|split| [u8::from(split.is_some())]));
        stream.int(0);
        stream.int(0);
    }
    ExportedModel { bytes: stream.0, notes: Vec::new(), losses: portable.losses }
}

/// A stream that is being read.
struct TreeliteReader<'a>(&'a [u8]);

impl<'a> TreeliteReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("the file is truncated")?;
        self.0 = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| "the file is truncated".to_owned())
    }

    fn int(&mut self) -> Result<i32, String> {
        Ok(i32::from_le_bytes(self.fixed()?))
    }

    /// Reads an array of elements of `N` bytes. Its memory is bounded by the size of the file.
    fn array<const N: usize>(&mut self) -> Result<Vec<[u8; N]>, String> {
        let count = u64::from_le_bytes(self.fixed()?);
        let size = usize::try_from(count).ok().and_then(|count| count.checked_mul(N));
        let bytes = self.take(size.ok_or("an array is too long")?)?;
        Ok(bytes.chunks_exact(N).map(|chunk| chunk.try_into().unwrap_or([0; N])).collect())
    }

    fn ints(&mut self) -> Result<Vec<i32>, String> {
        Ok(self.array()?.into_iter().map(i32::from_le_bytes).collect())
    }

    fn flags(&mut self) -> Result<Vec<u8>, String> {
        Ok(self.array::<1>()?.into_iter().flatten().collect())
    }

    fn numbers(&mut self, is_double: bool) -> Result<Vec<f64>, String> {
        Ok(match is_double {
            true => self.array()?.into_iter().map(f64::from_le_bytes).collect(),
            false => self.array()?.into_iter().map(|bytes| f64::from(f32::from_le_bytes(bytes))).collect(),
        })
    }
}

/// Reads a file as Treelite does.
pub(super) fn served(bytes: &[u8], features: &[ModelFeature]) -> Result<ServedModel, String> {
    let mut reader = TreeliteReader(bytes);
    if reader.int()? != VERSION[0] {
        return Err("the version is not 4".to_owned());
    }
    reader.int()?;
    reader.int()?;
    let is_double = match reader.fixed::<2>()? {
        [FLOAT32, FLOAT32] => false,
        [FLOAT64, FLOAT64] => true,
        _ => return Err("thresholds and leaves have an unknown type".to_owned()),
    };
    let count = u64::from_le_bytes(reader.fixed()?);
    if reader.int()? as usize != features.len() {
        return Err("the file has another number of features".to_owned());
    }
    let [_, is_mean] = reader.fixed::<2>()?;
    if is_mean != 0 && count == 0 {
        return Err("the mean of no trees is not a number".to_owned());
    }
    reader.int()?;
    reader.ints()?;
    reader.ints()?;
    reader.ints()?;
    reader.ints()?;
    if reader.flags()? != b"identity" {
        return Err("scores are transformed".to_owned());
    }
    reader.take(8)?;
    let base_scores = reader.numbers(true)?;
    reader.flags()?;
    reader.int()?;
    let mut trees = Vec::new();
    for _ in 0..count {
        trees.push(read_tree(&mut reader, is_double)?);
    }
    let rules = Rules {
        reads: as_is,
        goes_left: at_most,
        sum: if is_double { Sum::Double } else { Sum::Single },
        is_mean: is_mean != 0,
        test: "x <= t",
        blind: None,
    };
    let base_score = base_scores.first().copied().unwrap_or(0.0);
    Ok(ServedModel::Trees(ServedTrees { base_score, trees, rules }))
}

fn read_tree(reader: &mut TreeliteReader<'_>, is_double: bool) -> Result<Vec<ServedNode>, String> {
    let count = reader.int()? as usize;
    reader.take(1)?;
    let kinds = reader.flags()?;
    let (left, right, features) = (reader.ints()?, reader.ints()?, reader.ints()?);
    let missing = reader.flags()?;
    let (values, thresholds) = (reader.numbers(is_double)?, reader.numbers(is_double)?);
    let tests = reader.flags()?;
    reader.flags()?;
    reader.numbers(is_double)?;
    reader.array::<8>()?;
    reader.array::<8>()?;
    reader.array::<4>()?;
    reader.array::<8>()?;
    reader.array::<8>()?;
    reader.array::<8>()?;
    reader.flags()?;
    reader.array::<8>()?;
    reader.flags()?;
    reader.array::<8>()?;
    reader.flags()?;
    reader.int()?;
    reader.int()?;
    let lengths = [kinds.len(), left.len(), right.len(), features.len(), missing.len(), values.len()];
    if lengths.iter().chain([&thresholds.len(), &tests.len()]).any(|length| *length != count) {
        return Err("the arrays of a tree have different lengths".to_owned());
    }
    let node = |node: usize| match (kinds[node], tests[node]) {
        (LEAF, _) => Ok(ServedNode::Leaf(values[node])),
        (NUMERICAL, AT_MOST) => Ok(ServedNode::Split(ServedSplit {
            feature: features[node] as u32,
            threshold: thresholds[node],
            missing_left: missing[node] != 0,
            left: left[node] as usize,
            right: right[node] as usize,
        })),
        _ => Err("a node has a test that planetree does not write".to_owned()),
    };
    (0..count).map(node).collect()
}
