import { Menu } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { FILE_FORMATS } from './fileFormats';

interface Props {
  id: number;
  name: string;
  /** What is drawn is not stored: a file would hold something else. */
  unsaved?: boolean;
}

/** Items of a menu that download a stored cluster as a file, one for each format. */
export function ExportItems({ id, name, unsaved = false }: Props) {
  return (
    <>
      <Menu.Label>{unsaved ? 'Export: save first' : 'Export as'}</Menu.Label>
      {FILE_FORMATS.map(({ form, title }) =>
        unsaved ? (
          <Menu.Item
            key={form}
            leftSection={<IconDownload size={15} />}
            disabled
            data-testid={`export-${form}`}
          >
            {title}
          </Menu.Item>
        ) : (
          <Menu.Item
            key={form}
            leftSection={<IconDownload size={15} />}
            component="a"
            href={`/api/clusters/${id}/${form}`}
            download={`${name}.${form}`}
            data-testid={`export-${form}`}
          >
            {title}
          </Menu.Item>
        ),
      )}
    </>
  );
}
