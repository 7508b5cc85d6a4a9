//! Encodes serde values in a compact binary form. Integers have variable length, floats are stored as their bits, a
//! list starts with its length, and an enum value starts with the number of its variant. Field names are not stored,
//! so the sender and the receiver must be the same build of planetree.

mod decode;
mod encode;

use crate::error::Result;
use crate::wire::{WireReader, WireWriter, malformed};
use decode::CompactDecoder;
use encode::CompactEncoder;
use serde::de::{self, DeserializeOwned, Visitor};
use serde::ser;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Encodes a value.
///
/// # Panics
/// Panics if the length of a list or map is not known in advance, or if a value cannot be serialised.
pub fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut writer = WireWriter::default();
    value.serialize(CompactEncoder { writer: &mut writer }).expect("plain data always serialise");
    writer.into_bytes()
}

/// Decodes a value that was encoded by [`to_bytes`]. Returns an error if the bytes are malformed, or if bytes are
/// left over.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let mut reader = WireReader::new(bytes);
    let value = T::deserialize(CompactDecoder { reader: &mut reader }).map_err(|_| malformed())?;
    if reader.is_empty() { Ok(value) } else { Err(malformed()) }
}

/// Bytes that are encoded as one block instead of byte by byte.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Whole;
        impl Visitor<'_> for Whole {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> std::result::Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Whole)
    }
}

/// Encodes ascending numbers as differences, which take less space than the numbers. To use this encoding, add the
/// following attribute to a field: `#[serde(with = "planetree_base::compact::ascending")]`.
pub mod ascending {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Encodes the numbers.
    pub fn serialize<S: Serializer>(values: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
        let before = std::iter::once(&0).chain(values);
        serializer.collect_seq(values.iter().zip(before).map(|(value, before)| value.wrapping_sub(*before)))
    }

    /// Decodes the numbers.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
        let mut values = Vec::<u32>::deserialize(deserializer)?;
        let mut before = 0u32;
        for value in &mut values {
            before = before.wrapping_add(*value);
            *value = before;
        }
        Ok(values)
    }
}

/// The reason why a value cannot be encoded or decoded.
#[derive(Debug)]
struct CompactFault(String);

impl fmt::Display for CompactFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CompactFault {}

impl ser::Error for CompactFault {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        CompactFault(problem.to_string())
    }
}

impl de::Error for CompactFault {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        CompactFault(problem.to_string())
    }
}

impl From<crate::error::Error> for CompactFault {
    fn from(error: crate::error::Error) -> Self {
        CompactFault(error.to_string())
    }
}

type Done<T> = std::result::Result<T, CompactFault>;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Kind {
        Nothing,
        One(f32),
        Two(i32, Option<String>),
        Named { small: u8, all: std::ops::Range<usize> },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Everything {
        kinds: Vec<Kind>,
        table: BTreeMap<String, (i64, bool)>,
        bytes: Bytes,
        floats: Vec<f64>,
        #[serde(with = "ascending")]
        ascending: Vec<u32>,
        letter: char,
        unit: (),
        nested: Option<Box<Everything>>,
    }

    fn everything(numbers: &[i64], floats: &[f64], nested: Option<Box<Everything>>) -> Everything {
        let kind = |number: &i64| match number.rem_euclid(4) {
            0 => Kind::Nothing,
            1 => Kind::One(*number as f32),
            2 => Kind::Two(*number as i32, (number % 3 == 0).then(|| format!("ü{number}"))),
            _ => Kind::Named { small: *number as u8, all: 0..*number as u32 as usize },
        };
        Everything {
            kinds: numbers.iter().map(kind).collect(),
            table: numbers.iter().map(|number| (number.to_string(), (*number, number % 2 == 0))).collect(),
            bytes: Bytes(numbers.iter().map(|number| *number as u8).collect()),
            floats: floats.to_vec(),
            ascending: numbers.iter().map(|number| *number as u32).collect(),
            letter: '€',
            unit: (),
            nested,
        }
    }

    proptest! {
        #[test]
        fn values_come_back_and_what_was_cut_off_is_an_error(
            numbers in prop::collection::vec(any::<i64>(), 0..20), floats in prop::collection::vec(-1e300f64..1e300, 0..20),
        ) {
            let inner = everything(&numbers[..numbers.len() / 2], &[f64::INFINITY, -0.0], None);
            let value = everything(&numbers, &floats, Some(Box::new(inner)));
            let bytes = to_bytes(&value);
            prop_assert_eq!(&from_bytes::<Everything>(&bytes).unwrap(), &value);
            for cut in 0..bytes.len() {
                prop_assert!(from_bytes::<Everything>(&bytes[..cut]).is_err());
            }
            let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
            prop_assert!(from_bytes::<Everything>(&longer).is_err());
        }
    }

    #[test]
    fn encodings_are_small() {
        assert_eq!(to_bytes(&vec![1u32, 300]), [2, 1, 0xAC, 2]);
        assert_eq!(to_bytes(&Bytes(vec![7, 8])), [2, 7, 8]);
        assert_eq!(to_bytes(&Some(Kind::One(1.0))), [1, 1, 0, 0, 0x80, 0x3F]);
        // A corrupt length does not make the decoder reserve memory.
        assert!(from_bytes::<Vec<u64>>(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]).is_err());
    }
}
