/** Which command a pressed key means, and how keys are shown. */
import type { Command } from './command';
import { COMMANDS } from './commands';
import { capital } from '@/format/words';

type Key = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'shiftKey' | 'altKey'>;

/** The command of a pressed key; those of the browser's own events are left to it. */
export function commandFor(event: Key): Command | undefined {
  return COMMANDS.find((command) => !command.native && command.keys.some((key) => isPressed(key, event)));
}

function isPressed(key: string, event: Key): boolean {
  const parts = key.split('+');
  const name = parts.at(-1) ?? '';
  // A sign such as ? needs the shift key on many keyboards: only letters and named keys tell it apart.
  const isSign = name.length === 1 && !/[a-z]/.test(name);
  return (
    event.key.toLowerCase() === name &&
    (event.ctrlKey || event.metaKey) === parts.includes('mod') &&
    (isSign || event.shiftKey === parts.includes('shift')) &&
    !event.altKey
  );
}

const SHOWN: Readonly<Record<string, string>> = { mod: 'Ctrl', shift: 'Shift', escape: 'Esc', delete: 'Del' };

/** `mod+shift+z` → `Ctrl+Shift+Z`. */
export const shownKey = (key: string) =>
  key
    .split('+')
    .map((part) => SHOWN[part] ?? capital(part))
    .join('+');
