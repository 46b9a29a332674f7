import { ActionIcon, Badge, Button, Divider, Menu, Tooltip } from '@mantine/core';
import {
  IconArrowBackUp,
  IconArrowForwardUp,
  IconArrowLeft,
  IconBinaryTree,
  IconKeyboard,
  IconMarquee2,
  IconSearch,
  IconDots,
  IconFileImport,
  IconFlask,
  IconFocusCentered,
  IconPlayerPlay,
  IconSchema,
} from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { Link } from '@/components/navigation';
import { useClusters } from '@/api/queries';
import { ExportItems } from '@/cluster/ExportItems';
import classes from './editor.module.css';
import type { View } from './command';
import { commandOf } from './commands';
import { editor, useDrawing, useEditor, useUnsaved } from './editorStore';

export type Drawer = 'palette' | 'properties';

interface Props {
  readOnly: boolean;
  view: View;
  /** On a narrow page: the panel that is shown now. Undefined: both are always there. */
  drawer: Drawer | null | undefined;
  onDrawer: (panel: Drawer) => void;
  numProblems: number;
  saving: boolean;
  onSave: () => void;
  onImport: () => void;
  onShape: () => void;
}

/** Whose cluster it is, if this person may only save a copy. */
function Whose({ id }: { id: number }) {
  const cluster = useClusters().data?.find((row) => row.id === id);
  if (!cluster?.locked) return null;
  return (
    <Tooltip label={cluster.locked}>
      <Badge variant="light" color="gray" data-testid="locked">
        {cluster.template ? 'template' : `of ${cluster.owner || 'nobody'}`}
      </Badge>
    </Tooltip>
  );
}

/** Buttons above the canvas: undo, redo, arrange, fit, import, export, shapes and save. */
export function Toolbar(props: Props) {
  const { readOnly, view, drawer, onDrawer, numProblems, saving, onSave, onImport, onShape } = props;
  const { spec } = useDrawing();
  const unsaved = useUnsaved();
  const { id } = useEditor((state) => state.stored);
  const { past, future } = useEditor((state) => state.history);
  const boxSelects = useEditor((state) => state.boxSelects);
  const { undo, redo, ask, toggleBox } = editor();
  const empty = spec.devices.length === 0;
  return (
    <div className={classes.toolbar}>
      <Tooltip label="All clusters">
        <ActionIcon component={Link} to="/clusters" variant="subtle" color="gray" aria-label="All clusters">
          <IconArrowLeft size={18} />
        </ActionIcon>
      </Tooltip>
      <h1>{spec.title || spec.name}</h1>
      {readOnly ? (
        <Badge variant="light" color="gray">
          read only
        </Badge>
      ) : (
        <>
          <State unsaved={unsaved} isNew={id === 0} />
          <Whose id={id} />
        </>
      )}
      {!empty && (
        <Badge variant="light" color={numProblems ? 'red' : 'teal'} data-testid="validity">
          {numProblems === 0 ? 'valid' : numProblems === 1 ? '1 problem' : `${numProblems} problems`}
        </Badge>
      )}
      <div style={{ flex: 1 }} />
      {drawer !== undefined && (
        <Button.Group>
          {!readOnly && (
            <Button
              size="xs"
              variant={drawer === 'palette' ? 'light' : 'default'}
              aria-pressed={drawer === 'palette'}
              onClick={() => onDrawer('palette')}
              data-testid="show-palette"
            >
              Add
            </Button>
          )}
          <Button
            size="xs"
            variant={drawer === 'properties' ? 'light' : 'default'}
            aria-pressed={drawer === 'properties'}
            onClick={() => onDrawer('properties')}
            data-testid="show-properties"
          >
            Properties
          </Button>
        </Button.Group>
      )}
      {!readOnly && (
        <>
          <Tool label="Undo (Ctrl+Z)" onClick={undo} disabled={past.length === 0} testId="undo">
            <IconArrowBackUp size={18} />
          </Tool>
          <Tool label="Redo (Ctrl+Shift+Z)" onClick={redo} disabled={future.length === 0} testId="redo">
            <IconArrowForwardUp size={18} />
          </Tool>
          <Divider orientation="vertical" my={14} />
          <Tool
            label="Tidy up (T)"
            onClick={() => commandOf('tidy').run(view)}
            disabled={empty}
            testId="auto-layout"
          >
            <IconBinaryTree size={18} />
          </Tool>
        </>
      )}
      <Tool label="Show everything (F)" onClick={() => view.fit()} disabled={empty} testId="fit-view">
        <IconFocusCentered size={18} />
      </Tool>
      <Tool label="Find a node (/)" onClick={() => ask('search')} disabled={empty} testId="find-node">
        <IconSearch size={18} />
      </Tool>
      <Tool
        label={boxSelects ? 'Dragging selects (B)' : 'Dragging moves the view (B)'}
        onClick={toggleBox}
        disabled={empty}
        pressed={boxSelects}
        testId="box-select"
      >
        <IconMarquee2 size={18} />
      </Tool>
      <Tool label="Shortcuts (?)" onClick={() => ask('help')} disabled={false} testId="help">
        <IconKeyboard size={18} />
      </Tool>
      <Menu position="bottom-end" width={230}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label="More" data-testid="editor-menu">
            <IconDots size={18} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {!readOnly && (
            <>
              <Menu.Item leftSection={<IconSchema size={15} />} onClick={onShape} data-testid="menu-shape">
                Star, ring, mesh or tree…
              </Menu.Item>
              <Menu.Item
                leftSection={<IconFileImport size={15} />}
                onClick={onImport}
                data-testid="menu-import"
              >
                Import a drawing…
              </Menu.Item>
            </>
          )}
          <ExportItems id={id} name={spec.name} unsaved={id === 0 || unsaved} />
        </Menu.Dropdown>
      </Menu>
      <Divider orientation="vertical" my={14} />
      <Button
        variant="default"
        size="sm"
        leftSection={<IconPlayerPlay size={15} />}
        component={Link}
        to={`/runs/new?cluster=${id}`}
        disabled={id === 0 || unsaved}
        data-disabled={id === 0 || unsaved || undefined}
        aria-disabled={id === 0 || unsaved}
        data-testid="run-on-cluster"
        onClick={(event: React.MouseEvent) => (id === 0 || unsaved) && event.preventDefault()}
      >
        Run on it
      </Button>
      <Button
        variant="default"
        size="sm"
        leftSection={<IconFlask size={15} />}
        component={Link}
        to={`/experiments/new?cluster=${id}`}
        disabled={id === 0 || unsaved}
        data-disabled={id === 0 || unsaved || undefined}
        aria-disabled={id === 0 || unsaved}
        data-testid="experiment-on-cluster"
        onClick={(event: React.MouseEvent) => (id === 0 || unsaved) && event.preventDefault()}
      >
        Experiment
      </Button>
      {!readOnly && (
        <Button
          size="sm"
          onClick={onSave}
          loading={saving}
          disabled={!unsaved || empty}
          data-testid="save-cluster"
        >
          Save
        </Button>
      )}
    </div>
  );
}

function State({ unsaved, isNew }: { unsaved: boolean; isNew: boolean }) {
  const text = unsaved ? 'not saved' : isNew ? 'new' : 'saved';
  return (
    <Badge variant="light" color={unsaved ? 'yellow' : 'gray'} data-testid="save-state">
      {text}
    </Badge>
  );
}

interface ToolProps {
  label: string;
  onClick: () => void;
  disabled: boolean;
  /** Of a button that stays pressed. */
  pressed?: boolean;
  testId: string;
  children: ReactNode;
}

function Tool({ label, onClick, disabled, pressed, testId, children }: ToolProps) {
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant={pressed ? 'light' : 'subtle'}
        color={pressed ? undefined : 'gray'}
        aria-pressed={pressed}
        size="lg"
        aria-label={label}
        onClick={onClick}
        disabled={disabled}
        data-testid={testId}
      >
        {children}
      </ActionIcon>
    </Tooltip>
  );
}
