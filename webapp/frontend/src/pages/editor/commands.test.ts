import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { star } from '@/cluster/fixtures';
import { group, setCollapsed } from '@/cluster/groups';
import { afterChanges, isShownSelected } from './canvasSelection';
import type { View } from './command';
import { COMMANDS, commandOf, isAble } from './commands';
import { editor, useEditor } from './editorStore';
import { commandFor, shownKey } from './shortcutKeys';

const key = (pressed: string, more: Partial<KeyboardEvent> = {}) => ({
  key: pressed,
  ctrlKey: false,
  metaKey: false,
  shiftKey: false,
  altKey: false,
  ...more,
});
const view: View = { save: () => undefined, fit: () => undefined, clipboard: () => undefined };
const selected = () => editor().selection;

beforeEach(() => editor().open({ id: 1, version: 1, drawing: star() }));

describe('keys', () => {
  it('belong to one command each', () => {
    const keys = COMMANDS.flatMap((command) => command.keys);
    expect(new Set(keys).size).toBe(keys.length);
    expect(new Set(COMMANDS.map((command) => command.id)).size).toBe(COMMANDS.length);
  });

  it('find their command with exactly their modifiers', () => {
    expect(commandFor(key('l'))?.id).toBe('link');
    expect(commandFor(key('z', { ctrlKey: true }))?.id).toBe('undo');
    expect(commandFor(key('Z', { metaKey: true, shiftKey: true }))?.id).toBe('redo');
    expect(commandFor(key('G', { shiftKey: true }))?.id).toBe('ungroup');
    expect(commandFor(key('?', { shiftKey: true }))?.id).toBe('help');
    expect(commandFor(key('l', { ctrlKey: true }))).toBeUndefined();
    expect(commandFor(key('f', { altKey: true }))).toBeUndefined();
  });

  it('leave copying to the browser, which gives the page its clipboard', () => {
    expect(commandFor(key('c', { ctrlKey: true }))).toBeUndefined();
    expect(commandFor(key('c'))?.id).toBe('collapse');
  });

  it('stand in the documentation as they are', () => {
    const page = readFileSync(new URL('../../../../../docs/guides/drawing.md', import.meta.url), 'utf8');
    for (const { label, keys } of COMMANDS.filter((command) => command.keys.length > 0))
      expect(page).toContain(`\n| ${label} | ${keys.map(shownKey).join(' ')} |\n`);
  });

  it('are shown as they are on a keyboard', () => {
    expect(shownKey('mod+shift+z')).toBe('Ctrl+Shift+Z');
    expect(shownKey('escape')).toBe('Esc');
  });
});

describe('commands', () => {
  it('tidy up and show the new places, not those of before', () => {
    const shown: unknown[] = [];
    commandOf('tidy').run({ ...view, fit: (places) => shown.push(places) });
    const { positions } = editor().history.present.layout;
    expect(shown).toHaveLength(1);
    expect(new Set(shown[0] as unknown[])).toEqual(new Set(Object.values(positions)));
  });

  it('isolate a node by its links, and join it again', () => {
    editor().select({ nodes: ['device-2'], links: [] });
    const off = () => editor().history.present.layout.disabled;
    commandOf('isolate').run(view);
    expect(off()).toEqual(['device-2--switch-1']);
    editor().select({ nodes: ['switch-1'], links: [] });
    commandOf('isolate').run(view);
    expect(off().toSorted()).toEqual(['device-1--switch-1', 'device-2--switch-1', 'device-3--switch-1']);
    commandOf('isolate').run(view);
    expect(off()).toEqual([]);
  });

  it('select all nodes with all links, so that one key deletes everything', () => {
    commandOf('select-all').run(view);
    expect(selected().nodes).toHaveLength(4);
    expect(selected().links).toHaveLength(3);
    commandOf('delete').run(view);
    expect(editor().history.present.spec).toMatchObject({ devices: [], switches: [], links: [] });
  });

  it('are not able to do what the selection does not allow, or the person may not', () => {
    editor().select({ nodes: ['device-1'], links: [] });
    expect(isAble(commandOf('align-left'), false)).toBe(false);
    expect(isAble(commandOf('link'), false)).toBe(true);
    expect(isAble(commandOf('link'), true)).toBe(false);
    expect(isAble(commandOf('source'), false)).toBe(false);
    editor().select({ nodes: ['device-2'], links: [] });
    expect(isAble(commandOf('source'), false)).toBe(true);
  });

  it('switch off what is on, and on what is off', () => {
    editor().select({ nodes: ['device-1'], links: ['device-2--switch-1'] });
    commandOf('toggle').run(view);
    expect(editor().history.present.layout.disabled).toEqual(['device-1', 'device-2--switch-1']);
    commandOf('toggle').run(view);
    expect(editor().history.present.layout.disabled).toEqual([]);
  });

  it('tidy up without bends, as one step to undo', () => {
    Object.assign(globalThis, { requestAnimationFrame: () => 0 });
    const before = editor().history.present;
    commandOf('tidy').run(view);
    expect(editor().history.present.layout.positions['switch-1']).toEqual({ x: 0, y: 0 });
    editor().undo();
    expect(editor().history.present).toBe(before);
  });
});

describe('copies', () => {
  it('lie beside what was copied, and a second one beside the first', () => {
    editor().select({ nodes: ['device-2'], links: [] });
    editor().copySelected();
    editor().paste();
    editor().paste();
    const { positions } = editor().history.present.layout;
    expect([positions['device-4'], positions['device-5']]).toEqual([
      { x: 232, y: 32 },
      { x: 264, y: 64 },
    ]);
  });

  it('of another cluster lie where the page wants them', () => {
    editor().select({ nodes: ['device-2'], links: [] });
    editor().copySelected();
    editor().open({ id: 2, version: 1, drawing: star() });
    expect(editor().foreign).toBe(true);
    editor().paste({ x: 1000, y: 0 });
    expect(editor().history.present.layout.positions['device-4']).toEqual({ x: 1200, y: 0 });
  });
});

describe('the selection on the canvas', () => {
  it('takes a collapsed group for its nodes', () => {
    const { layout } = setCollapsed(group(star(), ['device-1', 'device-2']), ['device-1'], true);
    const now = { nodes: ['switch-1'], links: [] };
    const on = afterChanges(now, [{ type: 'select', id: 'group:0', selected: true }], [], layout);
    expect(on.nodes).toEqual(['switch-1', 'device-1', 'device-2']);
    expect(isShownSelected(on, layout)('group:0')).toBe(true);
    const off = afterChanges(on, [{ type: 'select', id: 'group:0', selected: false }], [], layout);
    expect(off.nodes).toEqual(['switch-1']);
    expect(isShownSelected(off, layout)('group:0')).toBe(false);
  });

  it('is the same object if nothing changes', () => {
    const now = { nodes: ['device-1'], links: [] };
    const change = [{ type: 'select' as const, id: 'device-1', selected: true }];
    expect(afterChanges(now, change, [{ type: 'remove' as const, id: 'x' }], star().layout)).toBe(now);
  });

  it('is kept by name when a node is renamed', () => {
    useEditor.setState({ selection: { nodes: ['device-1'], links: [] } });
    editor().renameNode('device-1', 'desk');
    expect(selected().nodes).toEqual(['desk']);
  });
});
