import { Table } from '@mantine/core';
import { metricText } from '@/format/metrics';
import classes from './chart.module.css';
import type { FigureData } from './model';
import { valueText } from './texts';

/** The values of a figure as a table: the same content without colours and positions. */
export function FigureTable({ data }: { data: FigureData }) {
  const panelled = data.panels.length > 1;
  const format = (value: number) => metricText(value, data.y.unit);
  return (
    <div className={classes.values} style={{ maxHeight: 430 }}>
      <Table data-testid="figure-table" stickyHeader verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            {panelled && <Table.Th>Panel</Table.Th>}
            <Table.Th>Series</Table.Th>
            <Table.Th>{data.x.title}</Table.Th>
            <Table.Th>World</Table.Th>
            <Table.Th>{data.y.title}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {data.panels.flatMap((panel) =>
            panel.lines.flatMap((line) =>
              line.spots.map((spot) => (
                <Table.Tr key={`${panel.label}/${line.label}/${line.world}/${spot.x}`}>
                  {panelled && <Table.Td>{panel.label}</Table.Td>}
                  <Table.Td>
                    {line.label}
                    {line.same_as && ` (the same plan as ${line.same_as})`}
                  </Table.Td>
                  <Table.Td>{spot.x_label}</Table.Td>
                  <Table.Td>{line.world}</Table.Td>
                  <Table.Td>{valueText(spot, format)}</Table.Td>
                </Table.Tr>
              )),
            ),
          )}
        </Table.Tbody>
      </Table>
    </div>
  );
}
