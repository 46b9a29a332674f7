import { notifications } from '@mantine/notifications';
import { useReactFlow } from '@xyflow/react';
import { useEffect, useMemo } from 'react';
import { middleOf } from '@/cluster/groups';
import { fromText, toText } from '@/cluster/clipboard';
import { nodeNames } from '@/cluster/drawing';
import { editor, useEditor } from './editorStore';
import { isBusy } from './useShortcuts';

type Action = 'copy' | 'cut' | 'paste';

/**
 * Copies, cuts and pastes nodes through the browser's clipboard, as text: also between clusters, tabs and windows.
 * The function returned does the same from a menu.
 */
export function useClipboard(): (action: Action) => void {
  const flow = useReactFlow();
  const readOnly = useEditor((state) => state.readOnly);
  const actions = useMemo(() => {
    const copy = () => {
      editor().copySelected();
      return editor().clipboard;
    };
    const paste = (text: string | null) => {
      const piece = text === null ? editor().clipboard : (fromText(text) ?? null);
      if (!piece) {
        notifications.show({
          message: 'There are no devices in the clipboard: copy some of a cluster first.',
        });
        return;
      }
      const own = editor().clipboard;
      if (own && text !== null && toText(own) !== text) editor().takeClipboard(piece);
      if (!own) editor().takeClipboard(piece);
      const { foreign } = editor();
      if (!foreign) return editor().paste();
      const canvas = document.querySelector('.react-flow')?.getBoundingClientRect();
      const to = flow.screenToFlowPosition({
        x: (canvas?.left ?? 0) + (canvas?.width ?? 0) / 2,
        y: (canvas?.top ?? 0) + (canvas?.height ?? 0) / 2,
      });
      const from = middleOf(piece, nodeNames(piece.spec));
      editor().paste({ x: Math.round(to.x - from.x), y: Math.round(to.y - from.y) });
    };
    return { copy, paste };
  }, [flow]);

  useEffect(() => {
    const onCopy = (event: ClipboardEvent) => {
      const isCut = event.type === 'cut';
      if (isBusy(event.target) || (isCut && readOnly) || hasSelectedText()) return;
      if (editor().selection.nodes.length === 0) return;
      const piece = actions.copy();
      if (!piece) return;
      event.clipboardData?.setData('text/plain', toText(piece));
      event.preventDefault();
      if (isCut) editor().removeSelected();
    };
    const onPaste = (event: ClipboardEvent) => {
      if (isBusy(event.target) || readOnly) return;
      event.preventDefault();
      actions.paste(event.clipboardData?.getData('text/plain') ?? null);
    };
    document.addEventListener('copy', onCopy);
    document.addEventListener('cut', onCopy);
    document.addEventListener('paste', onPaste);
    return () => {
      document.removeEventListener('copy', onCopy);
      document.removeEventListener('cut', onCopy);
      document.removeEventListener('paste', onPaste);
    };
  }, [actions, readOnly]);

  return useMemo(
    () => (action) => {
      if (action === 'paste') return actions.paste(null);
      const piece = actions.copy();
      // Only pages over HTTPS or of this machine may write to the clipboard without a key of the person.
      if (piece) void navigator.clipboard?.writeText(toText(piece)).catch(() => undefined);
      if (action === 'cut') editor().removeSelected();
    },
    [actions],
  );
}

const hasSelectedText = () => (window.getSelection()?.toString() ?? '') !== '';
