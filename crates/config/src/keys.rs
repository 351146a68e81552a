//! The keys of the config, as its types have them: what `--set` takes, what is near to a typo, what has to have a range.
//!
//! The types are asked, not a list: a deserializer hands every struct all of its fields and writes down their names.

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use crate::Config;

/// The dotted name of a key, checked by the compiler: `key!(load.unique_per_session)` is `"load.unique_per_session"`.
/// `[]` follows a list: `key!(instances[].kind)` is `"instances.kind"`; with a name in it, the key of that element:
/// `key!(instances["inst1"].kind)` is `"instances.inst1.kind"`.
#[macro_export]
macro_rules! key {
    ($section:ident [] $(.$key:ident)+) => {{
        const _: fn(&$crate::Config) = |config| {
            let _ = config.$section.first().map(|one| &one$(.$key)+);
        };
        concat!(stringify!($section) $(, ".", stringify!($key))+)
    }};
    ($section:ident [$name:expr] $(.$key:ident)+) => {{
        const _: &str = $crate::key!($section[] $(.$key)+);
        format!(concat!(stringify!($section), ".{}" $(, ".", stringify!($key))+), $name)
    }};
    ($section:ident $(.$key:ident)*) => {{
        const _: fn(&$crate::Config) = |config| {
            let _ = &config.$section$(.$key)*;
        };
        concat!(stringify!($section) $(, ".", stringify!($key))*)
    }};
}

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A number.
    Number,
    /// True or false.
    Switch,
    /// Any text.
    Text,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A table whose keys are free.
    Table,
}

/// One key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its name, dotted; the elements of a list have no part in it (`instances.kind`).
    pub name: String,
    /// What it takes.
    pub takes: Takes,
    /// Whether it takes a list of that.
    pub list: bool,
}

impl Key {
    /// The sections that it stands in: `slo.live.window_s` in `slo` and `slo.live`.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &str> {
        self.name.match_indices('.').filter_map(|(at, _)| self.name.get(..at))
    }
}

/// Every key, in the order of the types.
#[must_use]
pub fn all() -> Vec<Key> {
    let mut keys = Vec::new();
    let asked = Config::deserialize(Ask { name: String::new(), list: false, keys: &mut keys });
    debug_assert!(asked.is_ok(), "every type of the config can be asked for its keys: {asked:?}");
    keys
}

/// The key of this name.
#[must_use]
pub fn find(name: &str) -> Option<Key> {
    all().into_iter().find(|key| key.name == name)
}

/// The key that a name belongs to: itself, or the free table that it stands in. A section has itself as a table.
pub(crate) fn holds(name: &str) -> Option<Key> {
    let all = all();
    let inside = |key: &Key| name.strip_prefix(key.name.as_str()).is_some_and(|rest| rest.starts_with('.'));
    let found = all.iter().find(|key| key.name == name || key.takes == Takes::Table && inside(key)).cloned();
    let section = || all.iter().any(|key| key.sections().any(|section| section == name));
    found.or_else(|| section().then(|| Key { name: name.into(), takes: Takes::Table, list: false }))
}

/// Asks a type for its keys by giving it something of everything.
struct Ask<'a> {
    name: String,
    list: bool,
    keys: &'a mut Vec<Key>,
}

impl Ask<'_> {
    fn found(self, takes: Takes) {
        self.keys.push(Key { name: self.name, takes, list: self.list });
    }
}

macro_rules! ask {
    ($($method:ident => $takes:expr, $visit:ident($value:expr);)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.found($takes);
            visitor.$visit($value)
        }
    )*};
}

impl<'de> Deserializer<'de> for Ask<'_> {
    type Error = Error;

    ask! {
        deserialize_any => Takes::Text, visit_str("");
        deserialize_bool => Takes::Switch, visit_bool(false);
        deserialize_u32 => Takes::Number, visit_u32(0);
        deserialize_u64 => Takes::Number, visit_u64(0);
        deserialize_f64 => Takes::Number, visit_f64(0.0);
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(One(Some(Ask { list: true, ..self })))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.found(Takes::Table);
        visitor.visit_map(Fields { name: String::new(), left: [].iter(), keys: &mut Vec::new() })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Fields { name: self.name, left: fields.iter(), keys: self.keys })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.found(Takes::Words(words));
        let first: StrDeserializer<'_, Error> = words.first().copied().unwrap_or("").into_deserializer();
        visitor.visit_enum(first)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char str string bytes byte_buf unit unit_struct newtype_struct
        tuple tuple_struct identifier ignored_any
    }
}

/// The one element of a list.
struct One<'a>(Option<Ask<'a>>);

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|ask| seed.deserialize(ask)).transpose()
    }
}

/// Every field of a struct.
struct Fields<'a> {
    name: String,
    left: std::slice::Iter<'static, &'static str>,
    keys: &'a mut Vec<Key>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let next: Option<StrDeserializer<'_, Error>> =
            self.left.as_slice().first().map(|field| (*field).into_deserializer());
        next.map(|field| seed.deserialize(field)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let field = self.left.next().copied().unwrap_or("");
        let name = if self.name.is_empty() { field.to_owned() } else { format!("{}.{field}", self.name) };
        seed.deserialize(Ask { name, list: false, keys: self.keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_types_optional_ones_too() {
        let takes = |name: &str| find(name).map(|key| (key.takes, key.list));
        assert_eq!(takes("server.window_ms"), Some((Takes::Number, false)));
        assert_eq!(takes("ladder.tiers"), Some((Takes::Number, true)));
        assert_eq!(takes("slo.ttft_basis"), Some((Takes::Words(&["wire", "speech", "window"]), false)));
        assert_eq!(takes("instances.commands.log"), Some((Takes::Text, false)));
        assert_eq!(takes("sizing.promise.dealt_in_turn"), Some((Takes::Switch, false)));
        assert_eq!(takes("rehearsal"), Some((Takes::Table, false)));
        assert_eq!(takes("environment.commands"), Some((Takes::Table, false)));
        assert!(takes("slo").is_none() && takes("load.ramp").is_none());
        assert_eq!(holds("server.options.language").unwrap().name, "server.options");
        assert_eq!(holds("slo.live").unwrap().takes, Takes::Table);
        assert!(holds("tape.unique_per_session").is_none());
        assert_eq!(crate::key!(instances[].kind), "instances.kind");
        assert_eq!(crate::key!(instances["inst1"].kind), "instances.inst1.kind");
        assert_eq!(crate::key!(load.unique_per_session), "load.unique_per_session");
    }

    #[test]
    fn every_key_of_the_default_config_is_among_them() {
        let tree = toml::Table::try_from(Config::default()).unwrap();
        let mut seen = 0;
        let mut left = vec![(String::new(), toml::Value::Table(tree))];
        while let Some((name, value)) = left.pop() {
            match value {
                toml::Value::Table(table) if keys_below(&name) => {
                    let dot = if name.is_empty() { "" } else { "." };
                    left.extend(table.into_iter().map(|(key, value)| (format!("{name}{dot}{key}"), value)));
                }
                _ => {
                    assert!(holds(&name).is_some(), "{name}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 100, "{seen}");
    }

    fn keys_below(name: &str) -> bool {
        name.is_empty() || find(name).is_none()
    }
}
