//! Compact binary encoding of serde values: variable-length integers, floats as their bits, length-prefixed lists,
//! enums as the number of their variant. Field names are not written, so both sides need the same build.

use crate::error::Result;
use crate::wire::{WireReader, WireWriter, malformed};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};
use serde::ser;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Encodes a value.
///
/// # Panics
/// If a list or map does not know its length, or a value refuses to be serialised.
pub fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut writer = WireWriter::default();
    value.serialize(Encoder { writer: &mut writer }).expect("plain data always serialise");
    writer.into_bytes()
}

/// Decodes what [`to_bytes`] wrote; bytes that are left over are an error.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let mut reader = WireReader::new(bytes);
    let value = T::deserialize(Decoder { reader: &mut reader }).map_err(|_| malformed())?;
    if reader.is_empty() { Ok(value) } else { Err(malformed()) }
}

/// Bytes that are encoded as they are, not one by one.
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

/// Ascending numbers as differences, for `#[serde(with = "planetree_base::compact::ascending")]`.
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

/// Why a value cannot be encoded or decoded.
#[derive(Debug)]
struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

impl ser::Error for Unfit {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Unfit(problem.to_string())
    }
}

impl de::Error for Unfit {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Unfit(problem.to_string())
    }
}

impl From<crate::error::Error> for Unfit {
    fn from(error: crate::error::Error) -> Self {
        Unfit(error.to_string())
    }
}

type Done<T> = std::result::Result<T, Unfit>;

struct Encoder<'a> {
    writer: &'a mut WireWriter,
}

impl Encoder<'_> {
    fn length(&mut self, length: Option<usize>) -> Done<()> {
        let length = length.ok_or_else(|| Unfit("a list of unknown length".to_owned()))?;
        self.writer.count(length as u64);
        Ok(())
    }
}

/// Encodes integers of several types as variable-length ones.
macro_rules! encode_integers {
    ($($method:ident: $type:ty => $how:ident as $wide:ty),* $(,)?) => {
        $(fn $method(self, value: $type) -> Done<()> {
            self.writer.$how(value as $wide);
            Ok(())
        })*
    };
}

impl<'a> Serializer for Encoder<'a> {
    type Ok = ();
    type Error = Unfit;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    encode_integers! {
        serialize_bool: bool => count as u64,
        serialize_u8: u8 => byte as u8,
        serialize_u16: u16 => count as u64,
        serialize_u32: u32 => count as u64,
        serialize_u64: u64 => count as u64,
        serialize_char: char => count as u64,
        serialize_i8: i8 => signed as i64,
        serialize_i16: i16 => signed as i64,
        serialize_i32: i32 => signed as i64,
        serialize_i64: i64 => signed as i64,
        serialize_f64: f64 => float as f64,
        serialize_f32: f32 => single as f32,
    }

    fn serialize_str(self, text: &str) -> Done<()> {
        self.writer.text(text);
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Done<()> {
        self.writer.list(bytes);
        Ok(())
    }

    fn serialize_none(self) -> Done<()> {
        self.serialize_bool(false)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done<()> {
        self.writer.count(1);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done<()> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done<()> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, variant: u32, _: &'static str) -> Done<()> {
        self.serialize_u32(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> Done<()> {
        self.writer.count(variant.into());
        value.serialize(self)
    }

    fn serialize_seq(mut self, length: Option<usize>) -> Done<Self> {
        self.length(length)?;
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Done<Self> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Done<Self> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &'static str, variant: u32, _: &'static str, _: usize) -> Done<Self> {
        self.writer.count(variant.into());
        Ok(self)
    }

    fn serialize_map(mut self, length: Option<usize>) -> Done<Self> {
        self.length(length)?;
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Done<Self> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Done<Self> {
        self.writer.count(variant.into());
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Encodes the parts of a value one after the other.
macro_rules! encode_parts {
    ($($trait:ident: $method:ident($($key:ident)?)),* $(,)?) => {
        $(impl ser::$trait for Encoder<'_> {
            type Ok = ();
            type Error = Unfit;

            fn $method<T: Serialize + ?Sized>(&mut self, $($key: &'static str,)? value: &T) -> Done<()> {
                $(let _ = $key;)?
                value.serialize(Encoder { writer: self.writer })
            }

            fn end(self) -> Done<()> {
                Ok(())
            }
        })*
    };
}

encode_parts! {
    SerializeSeq: serialize_element(),
    SerializeTuple: serialize_element(),
    SerializeTupleStruct: serialize_field(),
    SerializeTupleVariant: serialize_field(),
    SerializeStruct: serialize_field(key),
    SerializeStructVariant: serialize_field(key),
}

impl ser::SerializeMap for Encoder<'_> {
    type Ok = ();
    type Error = Unfit;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done<()> {
        key.serialize(Encoder { writer: self.writer })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done<()> {
        value.serialize(Encoder { writer: self.writer })
    }

    fn end(self) -> Done<()> {
        Ok(())
    }
}

struct Decoder<'a, 'r> {
    reader: &'a mut WireReader<'r>,
}

impl Decoder<'_, '_> {
    fn flag(&mut self) -> Done<bool> {
        match self.reader.count()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(malformed().into()),
        }
    }
}

/// Decodes integers of several types.
macro_rules! decode_integers {
    ($($method:ident: $how:ident => $visit:ident as $type:ty),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
            visitor.$visit(<$type>::try_from(self.reader.$how()?).map_err(|_| malformed())?)
        })*
    };
}

impl<'de> Deserializer<'de> for Decoder<'_, '_> {
    type Error = Unfit;

    decode_integers! {
        deserialize_u8: byte => visit_u8 as u8,
        deserialize_u16: count => visit_u16 as u16,
        deserialize_u32: count => visit_u32 as u32,
        deserialize_u64: count => visit_u64 as u64,
        deserialize_i8: signed => visit_i8 as i8,
        deserialize_i16: signed => visit_i16 as i16,
        deserialize_i32: signed => visit_i32 as i32,
        deserialize_i64: signed => visit_i64 as i64,
        deserialize_f64: float => visit_f64 as f64,
        deserialize_f32: single => visit_f32 as f32,
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Done<V::Value> {
        Err(Unfit("the encoding has no types".to_owned()))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(mut self, visitor: V) -> Done<V::Value> {
        visitor.visit_bool(self.flag()?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        let number = u32::try_from(self.reader.count()?).map_err(|_| malformed())?;
        visitor.visit_char(char::from_u32(number).ok_or_else(malformed)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        visitor.visit_string(self.reader.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        self.deserialize_u32(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        visitor.visit_bytes(self.reader.list()?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Done<V::Value> {
        if self.flag()? { visitor.visit_some(self) } else { visitor.visit_none() }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Done<V::Value> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Done<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        let left = self.reader.length(0)?;
        visitor.visit_seq(Parts { reader: self.reader, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Done<V::Value> {
        visitor.visit_seq(Parts { reader: self.reader, left })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        left: usize,
        visitor: V,
    ) -> Done<V::Value> {
        self.deserialize_tuple(left, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
        let left = self.reader.length(0)?;
        visitor.visit_map(Parts { reader: self.reader, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Done<V::Value> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Done<V::Value> {
        visitor.visit_enum(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The parts of a list, map or struct.
struct Parts<'a, 'r> {
    reader: &'a mut WireReader<'r>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for Parts<'_, '_> {
    type Error = Unfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Done<Option<T::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(Decoder { reader: self.reader }).map(Some)
    }

    /// Trusted only as far as there can be bytes for it.
    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(self.reader.len()))
    }
}

impl<'de> de::MapAccess<'de> for Parts<'_, '_> {
    type Error = Unfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Done<Option<K::Value>> {
        de::SeqAccess::next_element_seed(self, seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Done<T::Value> {
        seed.deserialize(Decoder { reader: self.reader })
    }
}

impl<'de> de::EnumAccess<'de> for Decoder<'_, '_> {
    type Error = Unfit;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Done<(T::Value, Self)> {
        let variant = u32::try_from(self.reader.count()?).map_err(|_| malformed())?;
        let value: Done<T::Value> = seed.deserialize(variant.into_deserializer());
        Ok((value?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Decoder<'_, '_> {
    type Error = Unfit;

    fn unit_variant(self) -> Done<()> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Done<T::Value> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, left: usize, visitor: V) -> Done<V::Value> {
        self.deserialize_tuple(left, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Done<V::Value> {
        self.deserialize_tuple(fields.len(), visitor)
    }
}

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
        // A damaged length does not reserve memory.
        assert!(from_bytes::<Vec<u64>>(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]).is_err());
    }
}
