/** Saved views of the list of runs: a filter with its columns, order and groups under a name. */
import { type Filter, NO_FILTER, type Sort } from './table';

export interface View {
  name: string;
  filter: Filter;
  sort: Sort;
  columns: readonly string[];
  groupBy: readonly string[];
}

/** The views with this one, in the place of the one of the same name if there is one. */
export function withView(views: readonly View[], view: View): View[] {
  const at = views.findIndex(({ name }) => name === view.name);
  return at < 0 ? [...views, view] : views.with(at, view);
}

/** What was stored, whose filter may lack fields that came later. */
export function completed<Stored extends Pick<View, 'filter'>>(view: Stored): Stored {
  return { ...view, filter: { ...NO_FILTER, ...view.filter } };
}
