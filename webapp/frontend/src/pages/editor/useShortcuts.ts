import { useEffect } from 'react';
import { nodeNames } from '@/cluster/drawing';
import { editor } from './editorStore';

/** The editor's keyboard shortcuts; inactive while a text field has the focus. */
export function useShortcuts(readOnly: boolean, save: () => void) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const command = event.ctrlKey || event.metaKey;
      if (command && event.key === 's') {
        event.preventDefault();
        if (!readOnly) save();
        return;
      }
      if (isTyping(event.target)) return;
      const action = actionOf(event.key.toLowerCase(), command, event.shiftKey, readOnly);
      if (!action) return;
      event.preventDefault();
      action();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [readOnly, save]);
}

function actionOf(key: string, command: boolean, shift: boolean, readOnly: boolean): (() => void) | null {
  const now = editor();
  const selectAll = () => now.select({ nodes: nodeNames(now.history.present.spec), links: [] });
  if (command && key === 'a') return selectAll;
  if (!command && key === 'escape') return () => now.select({ nodes: [], links: [] });
  if (command && key === 'c' && now.selection.nodes.length) return now.copySelected;
  if (readOnly) return null;
  if (command && key === 'z') return shift ? now.redo : now.undo;
  if (command && key === 'y') return now.redo;
  if (command && key === 'v') return now.paste;
  if (command && key === 'd') {
    return () => {
      now.copySelected();
      now.paste();
    };
  }
  if (!command && (key === 'delete' || key === 'backspace')) return now.removeSelected;
  return null;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable ||
    ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName) ||
    target.closest('[role="dialog"]') !== null
  );
}
