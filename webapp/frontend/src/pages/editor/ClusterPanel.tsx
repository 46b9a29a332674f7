import { Select, Text, Textarea, TextInput } from '@mantine/core';
import type { ClusterSpec } from '@/api/types';
import { bytes, flopRate } from '@/format/units';
import { NAME_PATTERN, withSpec } from '@/cluster/drawing';
import classes from './editor.module.css';
import { editor, useDrawing } from './editorStore';
import { AdvicePanel } from './AdvicePanel';
import { FitCheck } from './FitCheck';
import { NameInput } from './NameInput';
import type { FitQuestion } from './useValidation';
import type { Validation } from '@/api/types';

interface Props {
  readOnly: boolean;
  errors: Record<string, string>;
  /** Whether the drawing has any. */
  problems: boolean;
  question: FitQuestion;
  onQuestion: (question: FitQuestion) => void;
  validation: Validation | undefined;
}

/** Properties of the whole cluster, shown while nothing is selected. */
export function ClusterPanel({ readOnly, errors, problems, question, onQuestion, validation }: Props) {
  const { spec } = useDrawing();
  const { edit } = editor();
  const set = (patch: Partial<ClusterSpec>, key: string) =>
    edit((old) => withSpec(old, patch), `cluster.${key}`);
  const workers = spec.devices.filter((device) => device.role === 'worker');
  return (
    <>
      <div className={classes.section}>
        <span className="overline">Cluster</span>
        <NameInput
          label="Name"
          value={spec.name}
          disabled={readOnly}
          testId="cluster-name"
          refuse={(name) =>
            NAME_PATTERN.test(name)
              ? null
              : 'Use up to 31 lower-case letters, digits, - and _, starting with a letter.'
          }
          onRename={(name) => set({ name }, 'name')}
        />
        {errors.name && (
          <Text size="xs" c="red">
            {errors.name}
          </Text>
        )}
        <TextInput
          label="Title"
          size="xs"
          value={spec.title}
          disabled={readOnly}
          data-testid="cluster-title"
          onChange={(event) => set({ title: event.currentTarget.value }, 'title')}
        />
        <Textarea
          label="Description"
          size="xs"
          autosize
          minRows={2}
          maxRows={6}
          value={spec.description}
          disabled={readOnly}
          data-testid="cluster-description"
          onChange={(event) => set({ description: event.currentTarget.value }, 'description')}
        />
        <Select
          label="Holds the prompt, receives the result"
          size="xs"
          value={spec.source || null}
          disabled={readOnly}
          allowDeselect={false}
          data={spec.devices.map((device) => device.name)}
          data-testid="cluster-source"
          placeholder="no device yet"
          onChange={(source) => source && set({ source }, 'source')}
        />
      </div>
      <AdvicePanel problems={problems} />
      <div className={classes.section}>
        <span className="overline">Altogether</span>
        <Figures
          rows={[
            ['Devices', `${spec.devices.length} (${workers.length} compute)`],
            ['Switches', String(spec.switches.length)],
            ['Links', String(spec.links.length)],
            ['Peak rate', flopRate(workers.reduce((sum, device) => sum + device.flop_per_s, 0))],
            ['Memory', bytes(workers.reduce((sum, device) => sum + device.memory_bytes, 0))],
          ]}
        />
      </div>
      <FitCheck question={question} onQuestion={onQuestion} validation={validation} />
    </>
  );
}

function Figures({ rows }: { rows: [string, string][] }) {
  return rows.map(([label, value]) => (
    <Text key={label} size="xs" style={{ display: 'flex', justifyContent: 'space-between' }}>
      <Text span inherit c="dimmed">
        {label}
      </Text>
      {value}
    </Text>
  ));
}
