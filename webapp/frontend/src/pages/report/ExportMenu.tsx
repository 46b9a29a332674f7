import { Button, Menu } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';

const FILES = [
  { name: 'report.json', title: 'Report, JSON', about: 'everything, for scripts' },
  { name: 'report.csv', title: 'Report, CSV', about: 'figures and tables, for spreadsheets' },
  { name: 'trace.json', title: 'Trace for Perfetto', about: 'open it in ui.perfetto.dev' },
];

/** The report as files. */
export function ExportMenu({ runId, hasReport }: { runId: number; hasReport: boolean }) {
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconDownload size={16} />} data-testid="export">
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {FILES.map(({ name, title, about }) => (
          <Menu.Item
            key={name}
            component="a"
            href={`/api/runs/${runId}/${name}`}
            download
            data-testid={`export-${name}`}
            disabled={!hasReport && name.startsWith('report')}
          >
            {title}
            <div style={{ color: 'var(--loom-dim)', fontSize: 12 }}>{about}</div>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
