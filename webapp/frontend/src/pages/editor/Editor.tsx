import { Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { ReactFlowProvider, useReactFlow } from '@xyflow/react';
import { useEffect, useMemo, useState } from 'react';
import { useMayWrite } from '@/api/queries';
import { useDocumentTitle } from '@/components/Page';
import { Canvas } from './Canvas';
import type { View } from './command';
import { ConflictDialog } from './ConflictDialog';
import { ContextMenu } from './ContextMenu';
import type { Drawing } from '@/cluster/drawing';
import classes from './editor.module.css';
import { editor, useDrawing, useEditor, useUnsaved } from './editorStore';
import { ImportDialog } from './ImportDialog';
import { Palette } from './Palette';
import { Problems } from './Problems';
import { Questions } from './Questions';
import { ShapeDialog } from './ShapeDialog';
import { SidePanel } from './SidePanel';
import { type Drawer, Toolbar } from './Toolbar';
import { useClipboard } from './useClipboard';
import { UnsavedGuard } from './UnsavedGuard';
import { useFit } from './useFit';
import { useSave } from './useSave';
import { useShortcuts } from './useShortcuts';
import { type FitQuestion, useValidation } from './useValidation';

/** Narrower than this, both panels lie over the canvas, one at a time, when a button asks for them. */
const NARROW = '(max-width: 960px)';

export function Editor({ onReload }: { onReload: () => void }) {
  return (
    <ReactFlowProvider>
      <Workbench onReload={onReload} />
    </ReactFlowProvider>
  );
}

/** The cluster editor: palette, canvas, properties, and the dialogs that replace or store the drawing. */
function Workbench({ onReload }: { onReload: () => void }) {
  const { spec } = useDrawing();
  const readOnly = !useMayWrite();
  const unsaved = useUnsaved();
  const flow = useReactFlow();
  const [question, setQuestion] = useState<FitQuestion>({
    model: null,
    weight_bits: null,
    strategy: null,
  });
  const [dialog, setDialog] = useState<'shape' | 'import' | null>(null);
  const { problems, marks, empty, validation } = useValidation(question);
  const saving = useSave();
  const clipboard = useClipboard();
  const { save } = saving;
  const fit = useFit();
  const view = useMemo<View>(() => ({ save, clipboard, fit }), [save, clipboard, fit]);
  useShortcuts(view);
  useEffect(() => editor().setReadOnly(readOnly), [readOnly]);
  useDocumentTitle(spec.title || spec.name);

  /** Replaces the drawing but keeps the cluster's name, as one step to undo. */
  const take = (drawing: Drawing, keepName: boolean) => {
    const { edit, select } = editor();
    edit((old) =>
      keepName
        ? { ...drawing, spec: { ...drawing.spec, name: old.spec.name, title: old.spec.title } }
        : drawing,
    );
    select({ nodes: [], links: [] });
    setDialog(null);
    window.setTimeout(() => flow.fitView({ maxZoom: 1, padding: 0.2 }), 50);
  };
  const isNew = useEditor((state) => state.stored.id === 0);
  const isNarrow = useMediaQuery(NARROW) ?? false;
  const [drawer, setDrawer] = useState<Drawer | null>(null);
  const shows = (panel: Drawer) => !isNarrow || drawer === panel;

  return (
    <div className={classes.whole}>
      <Toolbar
        readOnly={readOnly}
        view={view}
        drawer={isNarrow ? drawer : undefined}
        onDrawer={(panel) => setDrawer(panel === drawer ? null : panel)}
        numProblems={problems.length}
        saving={saving.busy}
        onSave={saving.save}
        onImport={() => setDialog('import')}
        onShape={() => setDialog('shape')}
      />
      <div
        className={classes.editor}
        style={readOnly && !isNarrow ? { gridTemplateColumns: 'minmax(0, 1fr) 320px' } : undefined}
      >
        {!readOnly && shows('palette') && <Palette />}
        <ContextMenu view={view}>
          <Canvas problems={marks} readOnly={readOnly} />
          <Problems problems={problems} />
          {empty && spec.switches.length === 0 && (
            <div className={classes.empty}>
              <Text fw={600} c="var(--loom-text)">
                Nothing drawn yet
              </Text>
              <Text size="sm">
                Drag devices here from the left, then pull links between them. Or start from a star, ring,
                mesh or tree, or import a drawing, in the menu ⋯ above. Everything works with the keyboard:
                press ?
              </Text>
            </div>
          )}
        </ContextMenu>
        {shows('properties') && (
          <SidePanel
            readOnly={readOnly}
            view={view}
            problems={problems}
            question={question}
            onQuestion={setQuestion}
            validation={validation}
          />
        )}
      </div>
      <ShapeDialog
        opened={dialog === 'shape'}
        onClose={() => setDialog(null)}
        replaces={!empty}
        onTake={(drawing) => take(drawing, true)}
      />
      <ImportDialog
        opened={dialog === 'import'}
        onClose={() => setDialog(null)}
        onTake={(drawing) => take(drawing, !isNew)}
      />
      <Questions />
      <ConflictDialog
        conflict={saving.conflict}
        name={spec.name}
        onClose={saving.dismiss}
        onOverwrite={saving.overwrite}
        onSaveAs={saving.saveAs}
        onReload={() => {
          saving.dismiss();
          onReload();
        }}
      />
      <UnsavedGuard unsaved={unsaved && !saving.busy} />
    </div>
  );
}
