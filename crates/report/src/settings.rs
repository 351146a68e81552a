//! Settings as they are shown and compared.

/// Keys and values of a TOML tree as `a.b.c`, arrays in one cell.
pub(crate) fn flatten(prefix: &str, value: &toml::Value, out: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&path, value, out);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            for (at, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(toml::Value::as_str).map(str::to_owned);
                flatten(&format!("{prefix}.{}", name.unwrap_or_else(|| at.to_string())), item, out);
            }
        }
        toml::Value::String(text) => out.push((prefix.to_string(), text.clone())),
        other => out.push((prefix.to_string(), other.to_string())),
    }
}
