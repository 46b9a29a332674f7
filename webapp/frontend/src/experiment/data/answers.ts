/** What the server answers about experiments: names for the generated types. */
import type { Schemas } from '@/api/types/schemas';

export type ExperimentRow = Schemas['ExperimentRow'];
export type ExperimentState = ExperimentRow['state'];
export type StoredExperiment = Schemas['ExperimentOut'];
export type Progress = StoredExperiment['progress'];
export type WorldProgress = Schemas['WorldProgress'];
export type PointAnswer = Schemas['PointOut'];
/** A point in one world. `index` and `world` identify it. */
export type RowAnswer = Schemas['RowOut'];
export type RowState = RowAnswer['state'];
export type RowsAnswer = Schemas['RowsOut'];
export type PreviewAnswer = Schemas['PreviewOut'];
/** A figure with everything that it shows; crossings of lines are in its panels. */
export type FigureAnswer = Schemas['FigureData'];
/** The best of one place: all that are not distinguishable from the first of `winners`. */
export type BestAnswer = Schemas['Best'];
export type ClaimAnswer = Schemas['Verdict'];
export type Verdict = ClaimAnswer['verdict'];
export type PublishedAnswer = Schemas['PublishedRow'];
export type Note = Schemas['Note'];
/** A change of the base after which the methods of an experiment differ. */
export type Remedy = Schemas['Remedy'];
export type PivotAnswer = Schemas['TableData'];
export type TableCellAnswer = Schemas['TableCell'];
export type AnalysisAnswer = Schemas['AnalysisOut'];
export type PlannersAnswer = Schemas['PlannersOut'];
/** An experiment that comes with EdgeLoom, whole: a copy of it can be stored. */
export type ShippedExperiment = Schemas['ShippedOut'];
/** What the reproductions of the papers come to, by the shipped results. */
export type Reproductions = Schemas['Reproductions'];
export type PaperSummary = Schemas['PaperSummary'];
export type ReproductionSummary = Schemas['ExperimentSummary'];
/** One published figure beside ours. */
export type FigureVerdict = Schemas['FigureVerdict'];
/** The experiments of a study, stored here. */
export type ImportedStudy = Schemas['StudyOut'];
/** The study from which an experiment was imported. */
export type StudyOrigin = Schemas['StudyOrigin'];
/** Its results beside ours. */
export type StudyResults = Schemas['StudyResultsOut'];
export type StudyLine = Schemas['StudyLine'];
export type StudyValue = Schemas['StudyValue'];
