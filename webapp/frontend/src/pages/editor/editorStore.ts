/** The editor's state (zustand): the drawing with its history, the selection, the clipboard. */
import { create } from 'zustand';
import type { Drawing } from '@/cluster/drawing';
import { NO_LAYOUT, nodeNames, remove, rename, linkName } from '@/cluster/drawing';
import { excerpt, paste } from '@/cluster/excerpt';
import { begin, commit, type History, redo, seal, undo } from './history';

/** The stored cluster as it was loaded or last saved; id 0: not stored yet. */
export interface Stored {
  id: number;
  version: number;
  drawing: Drawing;
}

export interface Selection {
  nodes: readonly string[];
  links: readonly string[];
}

interface Editor {
  stored: Stored;
  history: History<Drawing>;
  selection: Selection;
  clipboard: Drawing | null;
  pastes: number;
  open: (stored: Stored) => void;
  saved: (stored: Stored) => void;
  edit: (change: (drawing: Drawing) => Drawing, mergeKey?: string) => void;
  undo: () => void;
  redo: () => void;
  select: (selection: Selection) => void;
  renameNode: (from: string, to: string) => void;
  removeSelected: () => void;
  copySelected: () => void;
  paste: () => void;
}

const NOTHING: Selection = { nodes: [], links: [] };
const PASTE_STEP = 32;
const NOT_OPEN: Drawing = {
  spec: { name: '', title: '', description: '', source: '', devices: [], switches: [], links: [] },
  layout: NO_LAYOUT,
};

export const useEditor = create<Editor>()((set, get) => ({
  stored: { id: 0, version: 0, drawing: NOT_OPEN },
  history: begin(NOT_OPEN),
  selection: NOTHING,
  clipboard: null,
  pastes: 0,

  open: (stored) => set({ stored, history: begin(stored.drawing), selection: NOTHING }),
  saved: (stored) => set((state) => ({ stored, history: seal(state.history) })),

  edit: (change, mergeKey) =>
    set((state) => ({ history: commit(state.history, change(state.history.present), mergeKey ?? null) })),
  undo: () => set((state) => present(undo(state.history), state.selection)),
  redo: () => set((state) => present(redo(state.history), state.selection)),
  select: (selection) => set((state) => ({ selection, history: seal(state.history) })),

  renameNode: (from, to) =>
    set((state) => {
      const history = commit(state.history, rename(state.history.present, from, to));
      const nodes = state.selection.nodes.map((name) => (name === from ? to : name));
      return history === state.history ? {} : { history, selection: { nodes, links: [] } };
    }),
  removeSelected: () =>
    set((state) => {
      const { nodes, links } = state.selection;
      return {
        history: commit(state.history, remove(state.history.present, nodes, links)),
        selection: NOTHING,
      };
    }),
  copySelected: () => {
    const { selection, history } = get();
    if (selection.nodes.length) set({ clipboard: excerpt(history.present, selection.nodes), pastes: 0 });
  },
  paste: () =>
    set((state) => {
      if (!state.clipboard) return {};
      const by = PASTE_STEP * (state.pastes + 1);
      const { drawing, names } = paste(state.history.present, state.clipboard, { x: by, y: by });
      return {
        history: commit(state.history, drawing),
        pastes: state.pastes + 1,
        selection: { nodes: names, links: [] },
      };
    }),
}));

/** Deselects what no longer exists after undo or redo. */
function present(history: History<Drawing>, selection: Selection) {
  const { spec } = history.present;
  const nodes = new Set(nodeNames(spec));
  const links = new Set(spec.links.map(linkName));
  return {
    history,
    selection: {
      nodes: selection.nodes.filter((name) => nodes.has(name)),
      links: selection.links.filter((name) => links.has(name)),
    },
  };
}

export const useDrawing = () => useEditor((state) => state.history.present);

/** Whether there are unsaved changes. */
export const useUnsaved = () => useEditor((state) => state.history.present !== state.stored.drawing);

/** The store's actions and present values, for use outside rendering. */
export const editor = () => useEditor.getState();
