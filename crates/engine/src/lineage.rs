//! Who may reach whom, and what a child is made of: never more than its parent has.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_agent::{CreateChild, Definition, SubAgent};
use attache_session::{
    Budget, BudgetChange, Created, ErrorCode, Event, Json, Limit, Payer, Position, SessionId,
    grant, may_spawn, spent,
};
use attache_store::RowFilter;
use serde_json::Value;

use crate::ask::Shared;
use crate::bounds::refused;
use crate::catalog::CatalogError;
use crate::config::Environment;
use crate::error::EngineError;
use crate::view::SessionRow;

/// Rows of one reading of a tree; larger trees are read in pages.
const ROWS_AT_ONCE: usize = 1_000;

/// A row that the caller may see: its own, a child's or a descendant's. Everything else is answered
/// as unknown.
pub(crate) fn visible(
    shared: &Shared,
    caller: SessionId,
    target: SessionId,
) -> Result<SessionRow, EngineError> {
    let row = shared.known_row(target)?;
    if caller == target || shared.config.store.descends(target, caller)? {
        Ok(row)
    } else {
        Err(EngineError::unknown(target))
    }
}

/// Rows of the children of a session, in the order in which they joined.
pub(crate) fn children(shared: &Shared, parent: SessionId) -> Result<Vec<SessionRow>, EngineError> {
    rows(shared, RowFilter::Children(parent))
}

/// Rows of a listing, all pages of it.
pub(crate) fn rows(shared: &Shared, filter: RowFilter) -> Result<Vec<SessionRow>, EngineError> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let rows = shared.config.store.rows(filter, after, ROWS_AT_ONCE)?;
        let full = rows.len() == ROWS_AT_ONCE;
        after = rows.last().map(|row| row.session);
        all.extend(
            rows.into_iter()
                .map(|row| SessionRow::of(row, &shared.registry)),
        );
        if !full {
            return Ok(all);
        }
    }
}

/// Rows of all descendants of a session, each once, nearer ones first.
pub(crate) fn descendants(
    shared: &Shared,
    ancestor: SessionId,
) -> Result<Vec<SessionRow>, EngineError> {
    let mut all: Vec<SessionRow> = Vec::new();
    let mut seen = HashSet::from([ancestor]);
    let mut parents = VecDeque::from([ancestor]);
    while let Some(parent) = parents.pop_front() {
        for row in children(shared, parent)? {
            if seen.insert(row.session) {
                parents.push_back(row.session);
                all.push(row);
            }
        }
    }
    Ok(all)
}

/// What a session was born with.
pub(crate) fn created(shared: &Shared, session: SessionId) -> Result<Arc<Created>, EngineError> {
    let first = shared.config.store.events(session, Position(0), 1)?;
    match first.first().map(|item| &item.event.event) {
        Some(Event::Created(created)) => Ok(Arc::clone(created)),
        _ => Err(EngineError::unknown(session)),
    }
}

/// What a child is to be born with.
pub(crate) fn child_of(
    shared: &Shared,
    parent: SessionId,
    new: &CreateChild,
) -> Result<Created, EngineError> {
    let parents = with_model(shared, created(shared, parent)?);
    let (definition, model) = definition_of(shared, &parents, new)?;
    let definition = match definition {
        Some(definition) => {
            let given: BTreeMap<String, String> = new.parameters.iter().cloned().collect();
            let filled = definition.fill(&given).map_err(|error| {
                EngineError::new(ErrorCode::InvalidArguments, error.to_string())
            })?;
            shared
                .config
                .toolsets
                .belt(&filled.tools)
                .map_err(|error| {
                    EngineError::new(ErrorCode::DefinitionInvalid, error.to_string())
                })?;
            filled
        }
        None if !new.parameters.is_empty() => {
            return Err(EngineError::new(
                ErrorCode::InvalidArguments,
                "parameters are filled in when a definition is named; the caller's own has them \
                 filled in already",
            ));
        }
        None => parse(&parents.definition)?,
    };
    let own = new.definition.is_none();
    let asked = new.working_directory.as_deref();
    let named = definition.working_directory.as_deref().filter(|_| !own);
    let working_directory = inside(&parents.working_directory, asked.or(named))?;
    let name = new.name.clone().unwrap_or_else(|| definition.name.clone());
    // The parent's model may have been chosen by hand: it goes with the parent's definition.
    let model = match definition.model.as_deref().filter(|_| !own) {
        Some(named) => {
            let environment = shared.environment(parents.root);
            shared.config.models.resolve(named, &environment)?;
            named.into()
        }
        None if parents.runs_turns => model,
        // No run of the parent has shown that its model can be used.
        None => first_model(shared, &parents)?,
    };
    // The definition's own limits and those that were asked for; both only within what is left.
    let mut change = definition.budget.clone();
    change.extend(&new.budget);
    let chain = shared.chain(parent)?;
    let budget = bounded(shared, &chain, &change, &model, &parents)?;
    Ok(Created {
        name: name.into(),
        agent: definition.name.as_str().into(),
        model,
        definition: match &new.definition {
            None => parents.definition.clone(),
            Some(_) => definition.to_json(),
        },
        working_directory: working_directory.display().to_string().into(),
        root: parents.root,
        parents: vec![parent],
        takes_input: true,
        runs_turns: true,
        owning_profile: parents.owning_profile,
        executor_bindings: Json::from_checked("[]"),
        trust: parents.trust,
        continue_in_background: parents.continue_in_background,
        budget,
    })
}

/// The limits of a child, if it may be made at all.
fn bounded(
    shared: &Shared,
    chain: &[Payer],
    change: &BudgetChange,
    model: &str,
    parent: &Created,
) -> Result<Budget, EngineError> {
    may_spawn(chain).map_err(|refusal| refused(&refusal))?;
    let used = |session, limit| shared.used(session, limit);
    if let Some(refusal) = spent(chain, used) {
        return Err(refused(&refusal));
    }
    let budget = grant(chain, change, used).map_err(|refusal| refused(&refusal))?;
    let limited = |budget: &Budget| budget.get(Limit::Usd).is_some();
    if limited(&budget) || chain.iter().any(|payer| limited(&payer.bounds.budget)) {
        let environment = shared.environment(parent.root);
        priced(shared, model, &environment)?;
    }
    Ok(budget)
}

/// A limit of money means nothing where nobody knows what a call costs.
pub(crate) fn priced(
    shared: &Shared,
    model: &str,
    environment: &Environment,
) -> Result<(), EngineError> {
    let known = shared.config.models.resolve(model, environment)?;
    if known.facts().prices.is_some() {
        return Ok(());
    }
    Err(EngineError::new(
        ErrorCode::PriceUnknown,
        format!("a limit of money (usd) is set, and the price of the model {model} is not known"),
    ))
}

/// What is said where no model is chosen.
pub const NO_MODEL: &str = "no model is chosen: pass --model PROVIDER/MODEL, set ATTACHE_MODEL, or \
                            put `model = \"PROVIDER/MODEL\"` into config.toml";

/// The parent with the model that the settings name now, where none was chosen for it.
fn with_model(shared: &Shared, mut parent: Arc<Created>) -> Arc<Created> {
    if !parent.runs_turns && parent.model.is_empty() {
        let environment = shared.environment(parent.root);
        let directory = Path::new(&*parent.working_directory);
        let named = shared.config.models.default_model(directory, &environment);
        Arc::make_mut(&mut parent).model = named.unwrap_or_default().into();
    }
    parent
}

/// The model of a child whose parent never asked one.
fn first_model(shared: &Shared, parent: &Created) -> Result<Arc<str>, EngineError> {
    if parent.model.is_empty() {
        return Err(EngineError::new(ErrorCode::ModelUnknown, NO_MODEL));
    }
    let environment = shared.environment(parent.root);
    shared.config.models.resolve(&parent.model, &environment)?;
    Ok(Arc::clone(&parent.model))
}

/// The definition that a child asks for, unfilled, and the model it gets without one of its own.
/// None is the parent's own definition as it was started.
fn definition_of(
    shared: &Shared,
    parent: &Created,
    new: &CreateChild,
) -> Result<(Option<Definition>, Arc<str>), EngineError> {
    let model = Arc::clone(&parent.model);
    let Some(asked) = &new.definition else {
        // The model may have been chosen for the parent by hand: it goes with the definition.
        return Ok((None, model));
    };
    let own = parse(&parent.definition)?;
    match asked {
        Value::String(name) => {
            if let Some(SubAgent { definition, .. }) =
                own.sub_agents.iter().find(|agent| agent.name == *name)
            {
                return Ok((Some((**definition).clone()), model));
            }
            let directory = Path::new(&*parent.working_directory);
            let found = shared
                .config
                .catalog
                .find(name, directory)
                .map_err(|error| {
                    let code = match error {
                        CatalogError::Unknown { .. } => ErrorCode::DefinitionUnknown,
                        CatalogError::Invalid(_) => ErrorCode::DefinitionInvalid,
                    };
                    EngineError::new(code, error.to_string())
                })?;
            Ok((Some(found), model))
        }
        Value::Object(_) => {
            let child =
                Definition::from_json(&asked.to_string(), "definition").map_err(|error| {
                    EngineError::new(ErrorCode::DefinitionInvalid, error.to_string())
                })?;
            within(shared, parent, &own, &child)?;
            Ok((Some(child), model))
        }
        _ => Err(EngineError::new(
            ErrorCode::InvalidArguments,
            "definition must be an object or the name of a definition",
        )),
    }
}

/// An inline definition, and each one inside it, may use only what its parent's definition or that
/// one's sub-agents have.
fn within(
    shared: &Shared,
    parent: &Created,
    own: &Definition,
    child: &Definition,
) -> Result<(), EngineError> {
    let exceeds = |what: String| {
        Err(EngineError::new(
            ErrorCode::ExceedsParent,
            format!("the definition asks for {what}"),
        ))
    };
    let granted = own.sub_agents.iter().map(|agent| &*agent.definition);
    let holders: Vec<&Definition> = std::iter::once(own).chain(granted).collect();
    let belt = |definition: &Definition| {
        shared
            .config
            .toolsets
            .belt(&definition.tools)
            .map_err(|error| EngineError::new(ErrorCode::DefinitionInvalid, error.to_string()))
    };
    let belts = holders
        .iter()
        .map(|holder| belt(holder))
        .collect::<Result<Vec<_>, _>>()?;
    let provider = |model: &str| model.split('/').next().unwrap_or_default().to_owned();
    let mut left = vec![child];
    while let Some(asked) = left.pop() {
        for spec in belt(asked)?.offered().specs() {
            if !belts.iter().any(|belt| belt.get(&spec.name).is_some()) {
                return exceeds(format!(
                    "the tool `{}`, which its parent does not have",
                    spec.name
                ));
            }
        }
        if let Some(model) = &asked.model {
            let wanted = provider(model);
            let known = std::iter::once(&*parent.model)
                .chain(holders.iter().filter_map(|holder| holder.model.as_deref()));
            if !known.into_iter().any(|model| provider(model) == wanted) {
                return exceeds(format!(
                    "the provider `{wanted}`, which its parent does not have"
                ));
            }
        }
        left.extend(asked.sub_agents.iter().map(|agent| &*agent.definition));
    }
    if let Some(directory) = &child.working_directory {
        inside(&parent.working_directory, Some(directory))?;
    }
    Ok(())
}

fn parse(definition: &Json) -> Result<Definition, EngineError> {
    Definition::from_stored(definition)
        .map_err(|error| EngineError::new(ErrorCode::DefinitionInvalid, error))
}

/// A folder inside another one, judged by the real paths of both.
pub(crate) fn inside(base: &str, asked: Option<&str>) -> Result<PathBuf, EngineError> {
    let Some(asked) = asked else {
        return Ok(PathBuf::from(base));
    };
    let invalid = |text: String| EngineError::new(ErrorCode::InvalidArguments, text);
    let real = |path: &Path| {
        path.canonicalize().map_err(|_fault| {
            // The reason could tell of what lies outside.
            invalid(format!(
                "working_directory {asked:?} is no folder that can be opened"
            ))
        })
    };
    if asked.contains('\0') {
        return Err(invalid(
            "working_directory holds a NUL character".to_owned(),
        ));
    }
    let base = real(Path::new(base))?;
    let wanted = real(&base.join(asked));
    match wanted {
        Ok(wanted) if !wanted.starts_with(&base) => Err(EngineError::new(
            ErrorCode::ExceedsParent,
            format!("working_directory {asked:?} lies outside the parent's"),
        )),
        Ok(wanted) if wanted.is_dir() => Ok(wanted),
        Ok(_) => Err(invalid(format!("working_directory {asked:?} is no folder"))),
        // What does not exist is told apart only inside.
        Err(error) if Path::new(asked).is_relative() && !asked.contains("..") => Err(error),
        Err(_) => Err(EngineError::new(
            ErrorCode::ExceedsParent,
            format!("working_directory {asked:?} lies outside the parent's"),
        )),
    }
}
