//! Budgets as authors and models write them: an object of limits, each a number or `"none"`.

use attache_session::{BudgetChange, BudgetError};
use serde_json::{Map, Value};

/// Reads an object such as `{"tokens": 100000, "usd": 0.5, "agents": "none"}`.
///
/// # Errors
///
/// [`BudgetError`] with what is wrong and what is right.
pub fn budget_of(members: &Map<String, Value>) -> Result<BudgetChange, BudgetError> {
    let mut change = BudgetChange::default();
    for (key, value) in members {
        match value {
            Value::String(text) => change.add(key, text.trim())?,
            other => change.add(key, &other.to_string())?,
        }
    }
    Ok(change)
}

/// The same object again.
pub(crate) fn budget_to_json(change: &BudgetChange) -> Map<String, Value> {
    let limits = change.iter().map(|(limit, most)| {
        let value = most.map_or_else(|| "none".to_owned(), |most| limit.shown(most));
        (limit.as_str().to_owned(), Value::String(value))
    });
    limits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_limits_is_read_and_written() {
        for (json, want) in [
            (r#"{}"#, Ok("")),
            (r#"{"tokens": 1000, "usd": 0.5}"#, Ok("tokens=1000,usd=0.5")),
            (
                r#"{"agents": "none", "wall": " 60 "}"#,
                Ok("agents=none,wall=60"),
            ),
            (r#"{"tokens": null}"#, Err("tokens takes")),
            (r#"{"tokens": -1}"#, Err("tokens takes")),
            (r#"{"token": 1}"#, Err("no limit \"token\"")),
        ] {
            let members: Map<String, Value> = serde_json::from_str(json).unwrap();
            match (budget_of(&members), want) {
                (Ok(change), Ok(want)) => {
                    assert_eq!(change.to_string(), want);
                    assert_eq!(budget_of(&budget_to_json(&change)), Ok(change));
                }
                (Err(error), Err(words)) => {
                    assert!(error.to_string().contains(words), "{error}");
                }
                other => panic!("{json}: {other:?}"),
            }
        }
    }
}
