//! The two parameters that this door adds to each tool, taken out of a call's arguments. What is left
//! goes to the tool, which checks it by its own closed schema.

use attache_engine::parts::ToolError;
use attache_session::{ErrorCode, ItemId, SessionId};
use serde_json::{Map, Value};

use crate::door::{ACKNOWLEDGE, ROOT};

/// Most notices that one call can acknowledge: more than are ever shown at once.
const MOST: usize = 1_000;

/// What a call says to the door.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ForDoor {
    pub(crate) acknowledge: Vec<ItemId>,
    pub(crate) root: Option<SessionId>,
}

/// Takes the door's part out of the arguments.
pub(crate) fn take(arguments: &mut Map<String, Value>) -> Result<ForDoor, ToolError> {
    let acknowledge = match arguments.remove(ACKNOWLEDGE) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(ids)) if ids.len() <= MOST => {
            ids.iter().map(notice).collect::<Result<_, _>>()?
        }
        Some(_) => {
            return Err(ToolError::invalid(format!(
                "`{ACKNOWLEDGE}` must be an array of at most {MOST} ids of notices"
            )));
        }
    };
    let root = match arguments.remove(ROOT) {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.parse().map_err(|_no_id| {
            ToolError::new(ErrorCode::UnknownSession, format!("`{ROOT}` names no root"))
        })?),
        Some(_) => return Err(ToolError::invalid(format!("`{ROOT}` must be an id"))),
    };
    Ok(ForDoor { acknowledge, root })
}

fn notice(id: &Value) -> Result<ItemId, ToolError> {
    let id = id.as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| ToolError::invalid(format!("`{ACKNOWLEDGE}` must hold ids of notices")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ID: &str = "0197f1a0-0000-7000-8000-000000000001";

    fn of(value: &Value) -> (Result<ForDoor, ErrorCode>, Value) {
        let mut arguments = value.as_object().cloned().unwrap();
        let taken = take(&mut arguments).map_err(|error| error.code);
        (taken, Value::Object(arguments))
    }

    #[test]
    fn the_doors_part_is_taken_and_the_rest_stays() {
        let (taken, rest) = of(&json!({
            "session_id": "x", "acknowledge": [ID], "root_session_id": ID,
        }));
        let taken = taken.unwrap();
        assert_eq!(taken.acknowledge, [ID.parse::<ItemId>().unwrap()]);
        assert_eq!(taken.root, Some(ID.parse().unwrap()));
        assert_eq!(rest, json!({ "session_id": "x" }));
        for nothing in [
            json!({}),
            json!({ "acknowledge": null, "root_session_id": null }),
        ] {
            assert_eq!(of(&nothing), (Ok(ForDoor::default()), json!({})));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for wrong in [
            json!("x"),
            json!({}),
            json!(1),
            json!([1]),
            json!(["x"]),
            json!([[ID]]),
        ] {
            let (taken, _) = of(&json!({ "acknowledge": wrong }));
            assert_eq!(taken, Err(ErrorCode::InvalidArguments), "{wrong}");
        }
        let (taken, _) = of(&json!({ "root_session_id": 7 }));
        assert_eq!(taken, Err(ErrorCode::InvalidArguments));
        // What is no id names nothing, as an id that nobody has.
        let (taken, _) = of(&json!({ "root_session_id": "x" }));
        assert_eq!(taken, Err(ErrorCode::UnknownSession));
    }
}
