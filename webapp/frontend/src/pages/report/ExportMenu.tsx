import { Button, Menu } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconDownload } from '@tabler/icons-react';
import type { ReactNode, RefObject } from 'react';
import { api, sentence } from '@/api/client';
import type { RunDetail } from '@/api/types';
import { replayFile } from '@/run/feed/replayFile';
import { standalone } from './standalone';

const FILES = [
  { name: 'report.json', title: 'Report, JSON', about: 'everything, for scripts' },
  { name: 'report.csv', title: 'Report, CSV', about: 'figures and tables, for spreadsheets' },
  { name: 'trace.json', title: 'Trace for Perfetto', about: 'open it in ui.perfetto.dev' },
];

interface Props {
  run: RunDetail;
  title: string;
  about: string;
  /** What the page shows of the report. */
  body: RefObject<HTMLElement | null>;
  /** Why the page does not show all of it; null if it does. */
  lacks: string | null;
}

/** The report as files. */
export function ExportMenu({ run, title, about, body, lacks }: Props) {
  const address = `${location.origin}/runs/${run.id}`;
  const write = async (name: string, text: () => Promise<string>) => {
    try {
      save(await text(), name);
    } catch (error) {
      notifications.show({ title: 'Not exported', message: sentence(error), color: 'red' });
    }
  };
  const page = async () => {
    const json = new TextDecoder().decode(await api.bytes(`/runs/${run.id}/report.json`));
    return standalone({ body: body.current!, title, about, address, json });
  };
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconDownload size={16} />} data-testid="export">
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          onClick={() => void write(`run-${run.id}.html`, page)}
          disabled={!run.report || lacks !== null}
          data-testid="export-report.html"
        >
          <Words title="This page, HTML" about={lacks ?? 'one file, to read without the server'} />
        </Menu.Item>
        <Menu.Item
          onClick={() =>
            void write(`replay-${run.id}.html`, () => replayFile(run, { title, about, address }))
          }
          data-testid="export-replay.html"
        >
          <Words title="Replay, HTML" about="one file with the slider and the lanes, for lectures" />
        </Menu.Item>
        {FILES.map(({ name, title, about }) => (
          <Menu.Item
            key={name}
            component="a"
            href={`/api/runs/${run.id}/${name}`}
            download
            data-testid={`export-${name}`}
            disabled={!run.report && name.startsWith('report')}
          >
            <Words title={title} about={about} />
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function Words({ title, about }: { title: ReactNode; about: ReactNode }) {
  return (
    <>
      {title}
      <div style={{ color: 'var(--loom-dim)', fontSize: 12 }}>{about}</div>
    </>
  );
}

function save(html: string, name: string) {
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(new Blob([html], { type: 'text/html' }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
}
