import { Button, Group, TagsInput, Textarea, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useState } from 'react';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { RunDetail } from '@/api/types';
import { Panel } from '@/components/Panel';
import classes from './report.module.css';

interface Edit {
  name: string;
  notes: string;
  tags: string[];
}

/** What an exported page has: not what somebody is typing. */
function Stored({ name, notes, tags }: Edit) {
  const rows = [
    ['Name', name],
    ['Tags', tags.join(', ')],
    ['Notes', notes],
  ];
  return (
    <dl className={classes.stored} data-only-exported hidden>
      {rows.map(([title, text]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>{text || '–'}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Edits the run's name, tags and notes. */
export function Notes({ run }: { run: RunDetail }) {
  const mayWrite = run.locked === null;
  const stored: Edit = { name: run.name, notes: run.notes, tags: run.tags };
  const [edit, setEdit] = useState(stored);
  const save = useChange('runs', (changed: Edit) => api.patch<RunDetail>(`/runs/${run.id}`, changed));
  const same = JSON.stringify(edit) === JSON.stringify(stored);
  const submit = () =>
    save.mutate(edit, {
      onSuccess: () => notifications.show({ message: 'Saved.', color: 'green' }),
      onError: (error) => notifications.show({ title: 'Not saved', message: sentence(error), color: 'red' }),
    });
  return (
    <Panel title="Name, tags and notes" about={run.locked} testId="notes-panel">
      <Stored {...stored} />
      <div className={classes.notes} data-not-exported>
        <TextInput
          label="Name"
          value={edit.name}
          readOnly={!mayWrite}
          data-testid="run-name-input"
          onChange={(event) => setEdit({ ...edit, name: event.currentTarget.value })}
        />
        <TagsInput
          label="Tags"
          value={edit.tags}
          readOnly={!mayWrite}
          placeholder={edit.tags.length === 0 ? 'press Enter after each' : ''}
          data-testid="tags"
          onChange={(tags) => setEdit({ ...edit, tags })}
        />
        <Textarea
          label="Notes"
          value={edit.notes}
          readOnly={!mayWrite}
          autosize
          minRows={2}
          maxRows={12}
          data-testid="notes"
          className={classes.wholeRow}
          onChange={(event) => setEdit({ ...edit, notes: event.currentTarget.value })}
        />
      </div>
      {mayWrite && (
        <Group justify="flex-end" mt="sm">
          <Button
            size="xs"
            disabled={same}
            loading={save.isPending}
            onClick={submit}
            data-testid="save-notes"
          >
            Save
          </Button>
        </Group>
      )}
    </Panel>
  );
}
