//! Rules for what people set for one session. A setting holds over epochs and restarts.

use std::sync::Arc;

use super::Draft;
use super::input::is_text;
use crate::command::{Answer, Rejected};
use crate::event::Event;
use crate::settings::{SESSION_NAME_CHARS, SWITCHED_OFF, Setting, Settings};

/// Changes one setting; the same value again changes nothing.
pub(super) fn set(draft: &mut Draft, setting: &Setting) -> Result<Answer, Rejected> {
    let mut settings = Settings::clone(&draft.state.settings);
    match setting {
        Setting::ContinueInBackground(goes_on) => settings.continue_in_background = *goes_on,
        Setting::Name(name) => {
            let most = SESSION_NAME_CHARS;
            if is_text(name).is_err() || name.chars().count() > most {
                return Err(Rejected::SessionName { most });
            }
            settings.name = Some(Arc::clone(name));
        }
        Setting::Model(model) => {
            is_text(model).map_err(|_empty| Rejected::ModelName)?;
            settings.model = Some(Arc::clone(model));
        }
        Setting::Tool { name, offered } => {
            settings.switched_off.retain(|off| off != name);
            if !offered {
                if settings.switched_off.len() >= SWITCHED_OFF {
                    return Err(Rejected::TooManySwitchedOff { most: SWITCHED_OFF });
                }
                settings.switched_off.push(Arc::clone(name));
                settings.switched_off.sort_unstable();
            }
        }
    }
    if settings == *draft.state.settings {
        return Ok(Answer::Unchanged);
    }
    let settings = Arc::new(settings);
    draft.push(Event::SettingsSet { settings });
    Ok(Answer::Done)
}
