import { Table } from '@mantine/core';
import { metricText } from '@/format/metrics';
import classes from './chart.module.css';
import type { FigureData } from './model';
import { valueText } from './texts';

/** The values of a figure as a table: the same content without colours and positions. */
export function FigureTable({ data }: { data: FigureData }) {
  const faceted = data.facets.length > 1;
  const format = (value: number) => metricText(value, data.y.unit);
  return (
    <div className={classes.values} style={{ maxHeight: 430 }}>
      <Table data-testid="figure-table" stickyHeader verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            {faceted && <Table.Th>facet</Table.Th>}
            <Table.Th>series</Table.Th>
            <Table.Th>{data.x.title}</Table.Th>
            <Table.Th>source</Table.Th>
            <Table.Th>{data.y.title}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {data.facets.flatMap((facet) =>
            facet.series.flatMap((series) =>
              series.marks.map((mark) => (
                <Table.Tr key={`${facet.label}/${series.label}/${series.source}/${mark.x}`}>
                  {faceted && <Table.Td>{facet.label}</Table.Td>}
                  <Table.Td>{series.label}</Table.Td>
                  <Table.Td>{mark.xText}</Table.Td>
                  <Table.Td>{series.source}</Table.Td>
                  <Table.Td>{valueText(mark, format)}</Table.Td>
                </Table.Tr>
              )),
            ),
          )}
        </Table.Tbody>
      </Table>
    </div>
  );
}
