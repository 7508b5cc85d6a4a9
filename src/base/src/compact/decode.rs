//! Decodes serde values from the compact encoding that `mod.rs` describes.

use super::{CompactFault, Done};
use crate::wire::{WireReader, malformed};
use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

/// Decodes one value.
pub(super) struct CompactDecoder<'a, 'r> {
    /// The bytes that are not yet decoded.
    pub(super) reader: &'a mut WireReader<'r>,
}

impl CompactDecoder<'_, '_> {
    fn flag(&mut self) -> Done<bool> {
        match self.reader.count()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(malformed().into()),
        }
    }
}

/// Generates one decoding function for each of the given number types.
macro_rules! decode_integers {
    ($($method:ident: $how:ident => $visit:ident as $type:ty),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Done<V::Value> {
            visitor.$visit(<$type>::try_from(self.reader.$how()?).map_err(|_| malformed())?)
        })*
    };
}

impl<'de> Deserializer<'de> for CompactDecoder<'_, '_> {
    type Error = CompactFault;

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
        Err(CompactFault("the encoding does not store types".to_owned()))
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
        visitor.visit_seq(SequenceParts { reader: self.reader, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Done<V::Value> {
        visitor.visit_seq(SequenceParts { reader: self.reader, left })
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
        visitor.visit_map(SequenceParts { reader: self.reader, left })
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

/// The elements of a list, map or struct that are not yet decoded.
struct SequenceParts<'a, 'r> {
    reader: &'a mut WireReader<'r>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for SequenceParts<'_, '_> {
    type Error = CompactFault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Done<Option<T::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(CompactDecoder { reader: self.reader }).map(Some)
    }

    /// Returns the number of remaining elements, but at most the number of remaining bytes, so that a corrupt length
    /// does not reserve too much memory.
    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(self.reader.len()))
    }
}

impl<'de> de::MapAccess<'de> for SequenceParts<'_, '_> {
    type Error = CompactFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Done<Option<K::Value>> {
        de::SeqAccess::next_element_seed(self, seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Done<T::Value> {
        seed.deserialize(CompactDecoder { reader: self.reader })
    }
}

impl<'de> de::EnumAccess<'de> for CompactDecoder<'_, '_> {
    type Error = CompactFault;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Done<(T::Value, Self)> {
        let variant = u32::try_from(self.reader.count()?).map_err(|_| malformed())?;
        let value: Done<T::Value> = seed.deserialize(variant.into_deserializer());
        Ok((value?, self))
    }
}

impl<'de> de::VariantAccess<'de> for CompactDecoder<'_, '_> {
    type Error = CompactFault;

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
