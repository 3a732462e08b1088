//! What viewers of a session are told beside its row, history and queues, and which parts of that are other ones after a record.

use std::sync::Arc;

use attache_engine::parts::Definition;
use attache_engine::{EngineHandle, ToolSwitch};
use attache_protocol::{
    AgentInformation, ChildView, ModalView, OwnershipView, Patch, RetentionView, SessionDetail,
    ToolView, UsageTotals, ViewerView, encoded_len,
};
use attache_session::{CallId, Child, Created, Generation, Settings, Spent, State, Usage, preview};

use crate::modals;

/// Children that a snapshot has room for: the newest of them.
const CHILDREN: usize = 500;

/// Tools that a snapshot has room for.
const TOOLS: usize = 250;

/// Bytes of a snapshot's questions: the first ones, which are to be answered first.
const MODAL_BYTES: usize = 48 * 1024;

/// Characters of a tool's description.
const DESCRIPTION_CHARS: usize = 160;

/// The whole of it, as a snapshot has it.
pub(super) fn whole(
    engine: &EngineHandle,
    state: &State,
    generation: Generation,
    viewers: Vec<ViewerView>,
) -> Option<SessionDetail> {
    let created = state.created.as_deref()?;
    let children = &state.children[state.children.len().saturating_sub(CHILDREN)..];
    Some(SessionDetail {
        information: information(state, created),
        usage: usage(state.usage, state.spent),
        tools: tools(engine, state),
        children: children.iter().map(child).collect(),
        modals: questions(engine, state),
        viewers,
        retention: retention(&state.settings),
        ownership: OwnershipView {
            owning_profile_id: created.owning_profile.to_string(),
            generation: generation.0,
        },
    })
}

fn information(state: &State, created: &Created) -> AgentInformation {
    let known = Definition::from_stored(&created.definition).ok();
    let filled = |text: Option<&str>, other: &str| {
        let text = text.filter(|text| !text.trim().is_empty());
        text.unwrap_or(other).to_owned()
    };
    let shown = known.as_ref().and_then(|it| it.display_name.as_deref());
    let display_name = filled(shown, &created.agent);
    let described = known.as_ref().map(|it| it.description.as_str());
    let model = state.model();
    AgentInformation {
        agent_session_id: state.id.to_string(),
        agent_id: created.agent.to_string(),
        name: filled(Some(&state.name()), &created.agent),
        description: filled(described, &display_name),
        display_name,
        accepts_user_input: created.takes_input && created.runs_turns,
        current_model_id: (!model.is_empty()).then(|| model.to_string()),
        agent_definition: AgentInformation::definition(created.definition.as_str()),
    }
}

fn usage(usage: Usage, spent: Spent) -> UsageTotals {
    let Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning,
    } = usage;
    UsageTotals {
        total_input_token_count: input,
        total_output_token_count: output,
        total_cache_read_token_count: cache_read,
        total_cache_write_token_count: cache_write,
        total_reasoning_token_count: reasoning,
        total_session_cost_usd: spent.usd_nanos.map(|nanos| nanos as f64 / 1e9),
    }
}

fn questions(engine: &EngineHandle, state: &State) -> Vec<ModalView> {
    let open = engine.modals(state.id);
    let mut room = MODAL_BYTES;
    let views = open.iter().map(modals::view);
    let fitting = views.enumerate().take_while(|(index, view)| {
        let left = room.checked_sub(encoded_len(view));
        room = left.unwrap_or_default();
        // The first one is always there: each by itself fits into a frame.
        left.is_some() || *index == 0
    });
    fitting.map(|(_, view)| view).collect()
}

/// None where the definition asks for tools that this host does not have any more: such a session runs no turn either.
fn tools(engine: &EngineHandle, state: &State) -> Vec<ToolView> {
    let tools = engine.tools(state).unwrap_or_default();
    tools.iter().take(TOOLS).map(tool).collect()
}

fn tool(tool: &ToolSwitch) -> ToolView {
    let ToolSwitch {
        name,
        description,
        changes_state,
        offered,
    } = tool;
    let line = description.lines().next().unwrap_or_default();
    ToolView {
        name: name.to_string(),
        description: preview(line, DESCRIPTION_CHARS).0.to_owned(),
        changes_state: *changes_state,
        enabled: *offered,
    }
}

fn child((child, call): &(Child, Option<CallId>)) -> ChildView {
    ChildView {
        session_id: child.id.to_string(),
        call_id: call.as_ref().map(ToString::to_string),
        held: child.held,
    }
}

fn retention(settings: &Settings) -> RetentionView {
    RetentionView {
        continue_in_background: settings.continue_in_background,
    }
}

/// What of it was told last.
pub(super) struct ToldDetail {
    settings: Arc<Settings>,
    children: Arc<Vec<(Child, Option<CallId>)>>,
    usage: UsageTotals,
}

impl ToldDetail {
    /// All of it was told.
    pub(super) fn of(state: &State) -> Self {
        Self {
            settings: Arc::clone(&state.settings),
            children: Arc::clone(&state.children),
            usage: usage(state.usage, state.spent),
        }
    }

    /// What is another one now. It is told by that.
    pub(super) fn changes(&mut self, engine: &EngineHandle, state: &State) -> Vec<Patch> {
        let mut patches = Vec::new();
        let now = Self::of(state);
        let before = std::mem::replace(self, now);
        if !Arc::ptr_eq(&before.children, &self.children) {
            let known = &before.children;
            for (index, entry) in self.children.iter().enumerate() {
                if known.get(index) != Some(entry) {
                    let child = child(entry);
                    patches.push(Patch::ChildPut { child });
                }
            }
        }
        if before.usage != self.usage {
            let usage = self.usage;
            patches.push(Patch::UsagePut { usage });
        }
        if !Arc::ptr_eq(&before.settings, &self.settings) {
            patches.extend(self.settings_changes(engine, state, &before.settings));
        }
        patches
    }

    fn settings_changes(
        &self,
        engine: &EngineHandle,
        state: &State,
        before: &Settings,
    ) -> Vec<Patch> {
        let Settings {
            continue_in_background,
            name,
            model,
            switched_off,
        } = &*self.settings;
        let mut patches = Vec::new();
        if (name, model) != (&before.name, &before.model)
            && let Some(created) = &state.created
        {
            let information = Box::new(information(state, created));
            patches.push(Patch::InformationPut { information });
        }
        if *switched_off != before.switched_off {
            let tools = tools(engine, state);
            patches.push(Patch::ToolsPut { tools });
        }
        if *continue_in_background != before.continue_in_background {
            let retention = retention(&self.settings);
            patches.push(Patch::RetentionPut { retention });
        }
        patches
    }
}
