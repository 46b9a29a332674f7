/** What a command is, and what several commands share. */
import type { Drawing } from '@/cluster/drawing';
import type { Point } from '@/cluster/point';
import { editor, type Selection } from './editorStore';

/** What commands need from the page. */
export interface View {
  save: () => void;
  /** Shows everything, or these places. */
  fit: (places?: readonly Point[]) => void;
  /** Copies or pastes through the browser's clipboard. */
  clipboard: (action: 'copy' | 'cut' | 'paste') => void;
}

export interface Command {
  id: string;
  label: string;
  section: 'Draw' | 'Select' | 'Edit' | 'Arrange' | 'View';
  /** The first is shown. `mod` is Ctrl, or the command key of a Mac. */
  keys: readonly string[];
  /** Whether it changes the drawing: people who may only look do not have it. */
  writes: boolean;
  /** The browser itself turns these keys into an event, which the page listens to. */
  native?: boolean;
  able: (selection: Selection, drawing: Drawing) => boolean;
  run: (view: View) => void;
}

export const always = () => true;
export const anything = ({ nodes, links }: Selection) => nodes.length + links.length > 0;
export const nodes =
  (least: number) =>
  ({ nodes: chosen }: Selection) =>
    chosen.length >= least;

/** Runs a change of the drawing as one step to undo. */
export const edit = (change: (drawing: Drawing, selection: Selection) => Drawing) => () => {
  const { selection } = editor();
  editor().edit((drawing) => change(drawing, selection));
};
