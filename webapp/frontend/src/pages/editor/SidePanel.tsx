import { Button, Group, ScrollArea, Text } from '@mantine/core';
import { IconCopy, IconTrash } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import type { Validation } from '@/api/types';
import { ArrangePanel } from './ArrangePanel';
import type { View } from './command';
import { ClusterPanel } from './ClusterPanel';
import { DevicePanel } from './DevicePanel';
import { linkName, whyNotRename } from '@/cluster/drawing';
import classes from './editor.module.css';
import { editor, useDrawing, useEditor } from './editorStore';
import { LinkPanel } from './LinkPanel';
import { NameInput } from './NameInput';
import { OnOff } from './OnOff';
import type { PlacedProblem } from './problems';
import type { FitQuestion } from './useValidation';

interface Props {
  readOnly: boolean;
  view: View;
  problems: readonly PlacedProblem[];
  question: FitQuestion;
  onQuestion: (question: FitQuestion) => void;
  validation: Validation | undefined;
}

/** Properties of the selection: devices, a switch, links, or, if nothing is selected, the cluster. */
export function SidePanel({ readOnly, view, problems, question, onQuestion, validation }: Props) {
  const { spec } = useDrawing();
  const { nodes, links } = useEditor((state) => state.selection);
  const devices = spec.devices.filter((device) => nodes.includes(device.name));
  const chosenLinks = spec.links.filter((link) => links.includes(linkName(link)));
  const errors = (item: string) =>
    Object.fromEntries(
      problems
        .filter((problem) => problem.item === item && problem.field)
        .map((problem) => [problem.field, problem.message]),
    );
  let panel: ReactNode;
  if (nodes.length === 0 && links.length === 0) {
    panel = (
      <ClusterPanel
        {...{ readOnly, question, onQuestion, validation }}
        errors={errors('')}
        problems={problems.length > 0}
      />
    );
  } else if (devices.length > 0 && devices.length === nodes.length && links.length === 0) {
    panel = (
      <DevicePanel
        devices={devices}
        readOnly={readOnly}
        errors={devices.length === 1 ? errors(nodes[0] ?? '') : {}}
      />
    );
  } else if (nodes.length === 0) {
    panel = (
      <LinkPanel
        links={chosenLinks}
        readOnly={readOnly}
        errors={chosenLinks.length === 1 ? errors(links[0] ?? '') : {}}
      />
    );
  } else if (nodes.length === 1 && links.length === 0) {
    panel = <SwitchPanel name={nodes[0] ?? ''} readOnly={readOnly} />;
  } else {
    panel = (
      <>
        <div className={classes.section}>
          <span className="overline">Selection</span>
          <Text size="sm">
            {count(nodes.length, 'node')} and {count(links.length, 'link')}
          </Text>
          <OnOff names={[...nodes, ...links]} readOnly={readOnly} />
        </div>
        {chosenLinks.length > 0 && <LinkPanel links={chosenLinks} readOnly={readOnly} errors={{}} />}
        {devices.length > 0 && <DevicePanel devices={devices} readOnly={readOnly} errors={{}} />}
      </>
    );
  }
  return (
    <aside className={classes.side} aria-label="What is drawn" data-testid="side-panel">
      <ScrollArea key={[...nodes, ...links].join()} flex={1} type="auto" scrollbarSize={6}>
        {!readOnly && <ArrangePanel view={view} />}
        {panel}
      </ScrollArea>
      {(nodes.length > 0 || links.length > 0) && !readOnly && <SelectionActions canCopy={nodes.length > 0} />}
    </aside>
  );
}

function SwitchPanel({ name, readOnly }: { name: string; readOnly: boolean }) {
  const { spec } = useDrawing();
  const degree = spec.links.filter((link) => link.a === name || link.b === name).length;
  return (
    <div className={classes.section}>
      <span className="overline">Switch</span>
      <NameInput
        label="Name"
        value={name}
        refuse={(to) => whyNotRename(spec, name, to)}
        disabled={readOnly}
        testId="switch-name"
        onRename={(to) => editor().renameNode(name, to)}
      />
      <Text size="xs" c="dimmed">
        Forwards between its {count(degree, 'link')} at their rates.
      </Text>
      <OnOff names={[name]} readOnly={readOnly} />
    </div>
  );
}

function SelectionActions({ canCopy }: { canCopy: boolean }) {
  const { duplicate, removeSelected } = editor();
  return (
    <Group grow p="sm" gap="xs" style={{ borderTop: '1px solid var(--loom-line)' }}>
      {canCopy && (
        <Button
          size="xs"
          variant="default"
          leftSection={<IconCopy size={14} />}
          onClick={duplicate}
          data-testid="duplicate"
        >
          Duplicate
        </Button>
      )}
      <Button
        size="xs"
        variant="default"
        c="var(--loom-bad)"
        leftSection={<IconTrash size={14} />}
        onClick={removeSelected}
        data-testid="delete-selected"
      >
        Delete
      </Button>
    </Group>
  );
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`;
