/** The editor's state (zustand): the drawing with its history, the selection, the clipboard. */
import { create } from 'zustand';
import type { Point } from '@/cluster/autoLayout';
import type { Drawing } from '@/cluster/drawing';
import { emptyDrawing, nodeNames, remove, rename, linkName } from '@/cluster/drawing';
import { excerpt, paste } from '@/cluster/excerpt';
import { begin, commit, type History, redo, seal, undo } from './history';

/** The stored cluster as it was loaded or last saved; id 0: not stored yet. */
interface Stored {
  id: number;
  version: number;
  drawing: Drawing;
}

export interface Selection {
  nodes: readonly string[];
  links: readonly string[];
}

/** A dialog over the canvas: which node to link to, which node to find, the sheet of shortcuts. */
type Question = 'link' | 'search' | 'help';

interface Editor {
  stored: Stored;
  history: History<Drawing>;
  selection: Selection;
  clipboard: Drawing | null;
  /** Whether the clipboard is of another cluster, so that its places mean nothing here. */
  foreign: boolean;
  pastes: number;
  readOnly: boolean;
  question: Question | null;
  /** Dragging on the canvas selects nodes; otherwise it moves the view. */
  boxSelects: boolean;
  open: (stored: Stored) => void;
  saved: (stored: Stored) => void;
  setReadOnly: (readOnly: boolean) => void;
  ask: (question: Question | null) => void;
  toggleBox: () => void;
  edit: (change: (drawing: Drawing) => Drawing, mergeKey?: string) => void;
  /** The next edit is a step of its own. */
  seal: () => void;
  undo: () => void;
  redo: () => void;
  select: (selection: Selection) => void;
  selectAll: () => void;
  renameNode: (from: string, to: string) => void;
  removeSelected: () => void;
  copySelected: () => void;
  takeClipboard: (piece: Drawing) => void;
  paste: (by?: Point) => void;
  duplicate: () => void;
}

const NOTHING: Selection = { nodes: [], links: [] };
const PASTE_STEP = 32;
const NOT_OPEN = emptyDrawing('');

export const useEditor = create<Editor>()((set, get) => ({
  stored: { id: 0, version: 0, drawing: NOT_OPEN },
  history: begin(NOT_OPEN),
  selection: NOTHING,
  clipboard: null,
  foreign: false,
  pastes: 0,
  readOnly: false,
  question: null,
  boxSelects: false,

  open: (stored) =>
    set({
      stored,
      history: begin(stored.drawing),
      selection: NOTHING,
      foreign: true,
      pastes: 0,
      question: null,
    }),
  saved: (stored) => set((state) => ({ stored, history: seal(state.history) })),
  setReadOnly: (readOnly) => set({ readOnly }),
  ask: (question) => set({ question }),
  toggleBox: () => set((state) => ({ boxSelects: !state.boxSelects })),

  edit: (change, mergeKey) =>
    set((state) => ({ history: commit(state.history, change(state.history.present), mergeKey ?? null) })),
  seal: () => set((state) => ({ history: seal(state.history) })),
  undo: () => set((state) => present(undo(state.history), state.selection)),
  redo: () => set((state) => present(redo(state.history), state.selection)),
  select: (selection) => set((state) => ({ selection, history: seal(state.history) })),
  selectAll: () =>
    set(({ history }) => {
      const { spec } = history.present;
      return {
        selection: { nodes: nodeNames(spec), links: spec.links.map(linkName) },
        history: seal(history),
      };
    }),

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
    if (selection.nodes.length)
      set({ clipboard: excerpt(history.present, selection.nodes), foreign: false, pastes: 0 });
  },
  takeClipboard: (clipboard) => set({ clipboard, foreign: true, pastes: 0 }),
  paste: (by) => set((state) => (state.clipboard ? pasted(state, state.clipboard, by) : {})),
  duplicate: () =>
    set((state) => {
      const { selection, history } = state;
      return pasted({ history, pastes: 0 }, excerpt(history.present, selection.nodes));
    }),
}));

/** After pasting `piece`, which is selected then. A second paste lies beside the first. */
function pasted({ history, pastes }: Pick<Editor, 'history' | 'pastes'>, piece: Drawing, by?: Point) {
  const step = PASTE_STEP * (pastes + (by ? 0 : 1));
  const way = { x: (by?.x ?? 0) + step, y: (by?.y ?? 0) + step };
  const { drawing, names } = paste(history.present, piece, way);
  return { history: commit(history, drawing), pastes: pastes + 1, selection: { nodes: names, links: [] } };
}

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
